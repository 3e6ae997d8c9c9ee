export default function Map() {
  return <p>map</p>;
}
