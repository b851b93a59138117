/*
 * The same as try-network.sh, if the image's bash can't connect: takes thirty times as long. It runs in the image's Node, of
 * whatever version.
 */
for (const at of process.argv.slice(1)) {
  const [host, port] = at.split("/");
  const socket = require("node:net").connect({ host, port: Number(port) }, () => tell("connected"));
  const tell = (outcome) => {
    console.log(`/dev/tcp/${at}: ${outcome}`);
    socket.destroy();
  };
  socket.on("error", ({ code }) => tell(code));
}
