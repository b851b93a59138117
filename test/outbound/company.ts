import { createServer, request } from "node:http";
import { connect, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { createAuthority, type Authority } from "../../src/gateway/egress/certificates.ts";

/**
 * The network of a company, whose hosts only its proxy can resolve and reach: names below `.test`, which no resolver knows
 * (RFC 6761), with certificates of its own authority.
 */
export interface Company {
  readonly authority: Authority;
  /** The proxy's address, with credentials that it requires. */
  readonly proxy: string;
  /** What was asked of the proxy, such as `CONNECT git.company.test:443`, oldest first. */
  readonly asked: readonly string[];
  /** Puts a server on this machine behind a name, by TLS on 443 and in the clear on 80. */
  serve(host: string, url: string): Promise<void>;
  close(): Promise<void>;
}

const credentials = "worker:through the wall";

export async function startCompany(): Promise<Company> {
  const authority = createAuthority("The Company");
  const asked: string[] = [];
  const ports = new Map<string, number>();
  const fronts: Server[] = [];
  const open = new Set<Socket>();
  const track = (socket: Socket): void => {
    open.add(socket);
    socket.on("error", () => socket.destroy()).once("close", () => open.delete(socket));
  };
  const wanted = `Basic ${Buffer.from(credentials).toString("base64")}`;
  const proxy = createServer((incoming, response) => {
    asked.push(`${incoming.method} ${incoming.url}`);
    const url = new URL(incoming.url ?? "", "http://none.test");
    const port = ports.get(`${url.hostname}:${url.port || 80}`);
    if (incoming.headers["proxy-authorization"] !== wanted) {
      return void response.writeHead(407, { "Proxy-Authenticate": "Basic" }).end();
    }
    if (port === undefined) return void response.writeHead(502).end();
    const { "proxy-authorization": _own, ...headers } = incoming.headers;
    const to = { host: "127.0.0.1", port, method: incoming.method, path: `${url.pathname}${url.search}`, headers };
    const upstream = request(to, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    return void incoming.pipe(upstream);
  });
  proxy.on("connection", track);
  proxy.on("connect", (incoming, client: Socket) => {
    asked.push(`CONNECT ${incoming.url}`);
    const port = ports.get(incoming.url ?? "");
    if (incoming.headers["proxy-authorization"] !== wanted) {
      return void client.end(
        "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
      );
    }
    if (port === undefined) return void client.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    const upstream = connect(port, "127.0.0.1", () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      client.pipe(upstream).pipe(client);
    });
    return track(upstream);
  });
  const port = await listening(proxy);
  const [name = "", password = ""] = credentials.split(":");
  return {
    authority,
    proxy: `http://${name}:${encodeURIComponent(password)}@127.0.0.1:${port}`,
    asked,
    async serve(host, url) {
      const to = Number(new URL(url).port);
      const front = createTlsServer(authority.serverFor(host), (socket) => {
        const upstream = connect(to, "127.0.0.1");
        track(upstream);
        socket.on("error", () => socket.destroy());
        socket.pipe(upstream).pipe(socket);
      });
      front.on("connection", track).on("tlsClientError", () => undefined);
      fronts.push(front);
      ports.set(`${host}:443`, await listening(front));
      ports.set(`${host}:80`, to);
    },
    async close() {
      for (const socket of open) socket.destroy();
      for (const server of [proxy, ...fronts]) await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}
