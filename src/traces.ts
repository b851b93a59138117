import { AsyncLocalStorage } from "node:async_hooks";
import {
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
  type Tracer,
} from "@opentelemetry/api";

/** Of a span: never a secret, a prompt, or a URL with its query. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface OpenSpan {
  readonly traceId: string;
  /** W3C `traceparent` (https://www.w3.org/TR/trace-context/), for what goes on from here elsewhere or later. */
  readonly traceParent: string;
  set(attributes: SpanAttributes): void;
  /** @param error a code or a class, not a message: those quote what users wrote */
  fail(error: string): void;
  /** Safe to call twice. */
  end(): void;
}

export interface SpanOptions {
  /** `traceparent` of what led to it; without it the span around this one, else none. */
  readonly traceParent?: string | null | undefined;
  readonly attributes?: SpanAttributes;
  /** What the span is to others; `internal` without it. */
  readonly kind?: "server" | "consumer" | "client";
}

/** Spans of one process. Without an address to send them to it does nothing, and costs nothing. */
export interface Traces {
  /** Begins a span that whoever asked must end; null where traces are off. */
  begin(name: string, options?: SpanOptions): OpenSpan | null;
  /** Does `work` in a span, which ends with it; spans that begin meanwhile are its children. */
  span<T>(name: string, options: SpanOptions, work: (span: OpenSpan | null) => Promise<T>): Promise<T>;
  /** Sends what is left, for as long as a few seconds. */
  close(): Promise<void>;
}

/** Traces that are off. */
export const noTraces: Traces = {
  begin: () => null,
  span: (_name, _options, work) => work(null),
  close: () => Promise.resolve(),
};

export interface TraceSettings {
  /** Base address of an OTLP receiver over HTTP, without `/v1/traces`. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  /** Of the traces that begin here, from 0 to 1; those that a caller began are sent as it decided. */
  readonly share: number;
}

const exportLimitMs = 5_000;
/** Spans that end within this are sent together. */
const gatherMs = 1_000;

/**
 * Sends spans as OTLP in JSON over HTTP.
 * @param settings null: off, and no SDK is loaded
 * @param failed told why spans could not be sent, once until it works again
 */
export async function createTraces(settings: TraceSettings | null, failed: (error: Error) => void): Promise<Traces> {
  if (settings === null) return noTraces;
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
  return tracesOf(provider.getTracer("offstage"), () => provider.shutdown());
}

function tracesOf(tracer: Tracer, shutdown: () => Promise<void>): Traces {
  const around = new AsyncLocalStorage<Context>();

  function start(name: string, { traceParent, attributes = {}, kind }: SpanOptions) {
    const parent =
      contextOf(traceParent) ?? (traceParent === undefined ? around.getStore() : undefined) ?? ROOT_CONTEXT;
    const span = tracer.startSpan(name, { attributes, kind: kindOf(kind) }, parent);
    const { traceId, spanId, traceFlags } = span.spanContext();
    const open: OpenSpan = {
      traceId,
      traceParent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`,
      set: (more) => void span.setAttributes(more),
      fail: (error) => void span.setAttribute("error.type", error).setStatus({ code: SpanStatusCode.ERROR }),
      end: () => void (span.isRecording() && span.end()),
    };
    return { open, context: trace.setSpan(parent, span) };
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

function kindOf(kind: SpanOptions["kind"]): SpanKind {
  if (kind === "server") return SpanKind.SERVER;
  if (kind === "consumer") return SpanKind.CONSUMER;
  return kind === "client" ? SpanKind.CLIENT : SpanKind.INTERNAL;
}

/** Null for what is no trace context, which anybody may send. */
function contextOf(traceParent: string | null | undefined): Context | null {
  const [, traceId = "", spanId = "", flags = ""] =
    /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-|$)/u.exec(traceParent ?? "") ?? [];
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED;
  const context = { traceId, spanId, traceFlags, isRemote: true };
  return isSpanContextValid(context) ? trace.setSpanContext(ROOT_CONTEXT, context) : null;
}

/** The code of an error of ours or of Node's, else its class: never its message. */
export function kindOfError(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const { code } = error as { code?: unknown };
  return typeof code === "string" && /^\w{1,60}$/u.test(code) ? code : error.name.slice(0, 60);
}
