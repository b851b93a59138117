/*
 * Forwards connections on loopback to the gateway's socket, because few programs can use a unix socket, and starts the command
 * with the port filled in: `{gatewayPort}` in its environment and arguments.
 * Arguments: the socket's path, `closed` if the gateway is the only way to the network or `open`, the command, its arguments.
 */
const { spawn } = require("node:child_process");
const net = require("node:net");
const { constants } = require("node:os");

const [socket, kind, command, ...parameters] = process.argv.slice(1);
const server = net.createServer({ allowHalfOpen: true }, (inner) => {
  const outer = net.connect({ path: socket, allowHalfOpen: true });
  for (const [end, other] of [
    [inner, outer],
    [outer, inner],
  ]) {
    end.on("error", () => other.destroy());
    end.on("close", () => other.destroy());
    end.pipe(other);
  }
});

server.listen(0, "127.0.0.1", () => {
  const port = String(server.address().port);
  const fill = (text) => text.replaceAll("{gatewayPort}", port);
  const env = Object.fromEntries(Object.entries(process.env).map(([name, value]) => [name, fill(value)]));
  if (kind === "closed") {
    // Variables by which programs find a proxy; Node itself only if configured to.
    for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"])
      env[name] = `http://127.0.0.1:${port}`;
    for (const name of ["NO_PROXY", "no_proxy"]) env[name] = "127.0.0.1,localhost,::1";
    env.NODE_USE_ENV_PROXY = "1";
    // These read only their own variables. Of a Java program's options the last counts.
    env.YARN_HTTPS_PROXY = env.HTTPS_PROXY;
    const java = ["http", "https"].flatMap((scheme) => [
      `-D${scheme}.proxyHost=127.0.0.1`,
      `-D${scheme}.proxyPort=${port}`,
    ]);
    // By default Maven 3.9 and later ignore Java's own settings (https://maven.apache.org/resolver/configuration.html).
    const maven = [...java, "-Daether.connector.http.useSystemProperties=true"];
    for (const [name, options] of Object.entries({ MAVEN_OPTS: maven, GRADLE_OPTS: java, SBT_OPTS: java }))
      env[name] = [...(env[name] ? [env[name]] : []), ...options].join(" ");
  }
  const child = spawn(fill(command), parameters.map(fill), { stdio: "inherit", env });
  child.on("error", (error) => {
    process.stderr.write(`${error.message}\n`);
    process.exit(127);
  });
  child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
});
