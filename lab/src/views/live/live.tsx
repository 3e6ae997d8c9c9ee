export default function Live() {
  return <p>live</p>;
}
