export default function Packets() {
  return <p>packets</p>;
}
