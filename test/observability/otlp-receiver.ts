import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A span as the receiver shows it: of OTLP's JSON (https://opentelemetry.io/docs/specs/otlp/) what the tests look at. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first of a trace. */
  readonly parentSpanId: string;
  readonly name: string;
  readonly service: string;
  readonly failed: boolean;
  readonly attributes: Readonly<Record<string, unknown>>;
}

export interface OtlpReceiver {
  readonly url: string;
  /** Every span so far, in the order of their arrival. */
  spans(): readonly ReceivedSpan[];
  /** Everything that was sent, headers included, as text. */
  everything(): string;
  close(): Promise<void>;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface TraceRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, "attributes" | "parentSpanId"> & {
        readonly parentSpanId?: string;
        readonly attributes: readonly Attribute[];
        readonly status: { readonly code?: number };
      })[];
    }[];
  }[];
}

const errorStatus = 2;

/** Takes spans over HTTP as a collector does, and keeps them. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  let everything = "";
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.once("end", () => {
      const body = Buffer.concat(chunks).toString("utf8");
      everything += `${request.method} ${request.url} ${JSON.stringify(request.headers)}\n${body}\n`;
      spans.push(...spansOf(JSON.parse(body) as TraceRequest));
      response.writeHead(200, { "Content-Type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: () => spans,
    everything: () => everything,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function spansOf({ resourceSpans }: TraceRequest): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(read(resource.attributes)["service.name"]);
    return scopeSpans
      .flatMap((scope) => scope.spans)
      .map(({ traceId, spanId, parentSpanId = "", name, attributes, status }) => {
        const failed = status.code === errorStatus;
        return { traceId, spanId, parentSpanId, name, service, failed, attributes: read(attributes) };
      });
  });
}

function read(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
