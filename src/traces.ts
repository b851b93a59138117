import { AsyncLocalStorage } from "node:async_hooks";
import type * as openTelemetry from "@opentelemetry/api";
import type { Context, SpanKind, Tracer } from "@opentelemetry/api";

/** OpenTelemetry's API, loaded only if tracing is on. */
type Api = typeof openTelemetry;

/** Attributes of a span. They must never contain a secret, a prompt, or a URL with its query. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** A span that has not ended. */
export interface OpenSpan {
  readonly traceId: string;
  /** W3C `traceparent` (https://www.w3.org/TR/trace-context/), to continue the trace elsewhere or later. */
  readonly traceParent: string;
  set(attributes: SpanAttributes): void;
  /** @param error a code or a class, never a message, because messages quote what users wrote */
  fail(error: string): void;
  /** Can be called twice. */
  end(): void;
}

/** Options of a span. */
export interface SpanOptions {
  /** `traceparent` of its parent, null for none; undefined: the surrounding span of `Traces.span`. */
  readonly traceParent?: string | null | undefined;
  readonly attributes?: SpanAttributes;
  /** The kind of span; default `internal`. */
  readonly kind?: "server" | "consumer" | "client";
}

/** The spans of one process. Without an address to send them to they do and cost nothing. */
export interface Traces {
  /** Begins a span, which the caller must end; null if tracing is off. */
  begin(name: string, options?: SpanOptions): OpenSpan | null;
  /** Runs `work` in a span that ends with it. Spans that begin meanwhile are its children. */
  span<T>(name: string, options: SpanOptions, work: (span: OpenSpan | null) => Promise<T>): Promise<T>;
  /** Sends the remaining spans; gives up after a few seconds. */
  close(): Promise<void>;
}

/** Tracing that is off. */
export const noTraces: Traces = {
  begin: () => null,
  span: (_name, _options, work) => work(null),
  close: () => Promise.resolve(),
};

/** The receiver of spans, and the settings for it. */
export interface TraceSettings {
  /** Base address of an OTLP receiver over HTTP, without `/v1/traces`. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  /** Share of new traces that are sent, from 0 to 1; traces that a caller began follow its decision. */
  readonly share: number;
}

const exportLimitMs = 5_000;
/** Milliseconds for which ended spans are collected, to send them together. */
const gatherMs = 1_000;

/**
 * Makes tracing that sends spans as OTLP in JSON over HTTP (https://opentelemetry.io/docs/specs/otlp/).
 * @param settings null: tracing is off, and OpenTelemetry is not loaded
 * @param failed called with the error if spans could not be sent, and again only after a success
 */
export async function createTraces(settings: TraceSettings | null, failed: (error: Error) => void): Promise<Traces> {
  if (settings === null) return noTraces;
  const api = await import("@opentelemetry/api");
  const { BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler, TracerProvider } =
    await import("@opentelemetry/sdk-trace");
  const { OTLPTraceExporter } = await import("@opentelemetry/exporter-trace-otlp-http");
  const { resourceFromAttributes } = await import("@opentelemetry/resources");
  const exporter = new OTLPTraceExporter({
    url: `${settings.endpoint}/v1/traces`,
    headers: { ...settings.headers },
    timeoutMillis: exportLimitMs,
  });
  let works = true;
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ "service.name": settings.serviceName }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(settings.share) }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: {
          shutdown: () => exporter.shutdown(),
          forceFlush: () => exporter.forceFlush(),
          export(spans, done) {
            exporter.export(spans, (result) => {
              if (result.error !== undefined && works) failed(result.error);
              works = result.error === undefined;
              done(result);
            });
          },
        },
        scheduledDelayMillis: gatherMs,
        exportTimeoutMillis: exportLimitMs,
      }),
    ],
  });
  return tracesOf(api, provider.getTracer("offstage"), () => provider.shutdown());
}

function tracesOf(api: Api, tracer: Tracer, shutdown: () => Promise<void>): Traces {
  const around = new AsyncLocalStorage<Context>();

  function start(name: string, { traceParent, attributes = {}, kind }: SpanOptions) {
    const parent =
      contextOf(api, traceParent) ?? (traceParent === undefined ? around.getStore() : undefined) ?? api.ROOT_CONTEXT;
    const span = tracer.startSpan(name, { attributes, kind: kindOf(api.SpanKind, kind) }, parent);
    const { traceId, spanId, traceFlags } = span.spanContext();
    const open: OpenSpan = {
      traceId,
      traceParent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`,
      set: (more) => void span.setAttributes(more),
      fail: (error) => void span.setAttribute("error.type", error).setStatus({ code: api.SpanStatusCode.ERROR }),
      end: () => void (span.isRecording() && span.end()),
    };
    return { open, context: api.trace.setSpan(parent, span) };
  }

  return {
    begin: (name, options = {}) => start(name, options).open,
    span(name, options, work) {
      const { open, context } = start(name, options);
      return around.run(context, async () => {
        try {
          return await work(open);
        } catch (error) {
          open.fail(kindOfError(error));
          throw error;
        } finally {
          open.end();
        }
      });
    },
    async close() {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, exportLimitMs);
      });
      await Promise.race([shutdown().catch(() => undefined), late]);
      clearTimeout(timer);
    },
  };
}

function kindOf(kinds: Api["SpanKind"], kind: SpanOptions["kind"]): SpanKind {
  if (kind === "server") return kinds.SERVER;
  if (kind === "consumer") return kinds.CONSUMER;
  return kind === "client" ? kinds.CLIENT : kinds.INTERNAL;
}

/** Null for a malformed header, which any client may send. */
function contextOf(api: Api, traceParent: string | null | undefined): Context | null {
  const [, traceId = "", spanId = "", flags = ""] =
    /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-|$)/u.exec(traceParent ?? "") ?? [];
  const traceFlags = Number.parseInt(flags, 16) & api.TraceFlags.SAMPLED;
  const context = { traceId, spanId, traceFlags, isRemote: true };
  return api.isSpanContextValid(context) ? api.trace.setSpanContext(api.ROOT_CONTEXT, context) : null;
}

/** Names an error without its message: its code if it has one, else its class. */
export function kindOfError(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const { code } = error as { code?: unknown };
  return typeof code === "string" && /^\w{1,60}$/u.test(code) ? code : error.name.slice(0, 60);
}
