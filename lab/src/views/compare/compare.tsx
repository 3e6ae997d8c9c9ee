export default function Compare() {
  return <p>compare</p>;
}
