export default function Gallery() {
  return <p>gallery</p>;
}
