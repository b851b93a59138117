/** A value at a time, in ms since 1970. */
interface Point {
  readonly at: number;
  readonly value: number;
}

const size = { width: 300, height: 48 };

/** A small plot of a value over time: its line, its present value as words, and its greatest. */
export function Plot({
  name,
  now,
  points,
  limit,
  format,
}: {
  name: string;
  /** The present value as words. */
  now: string;
  points: readonly Point[];
  /** The greatest possible value; null: there is none. */
  limit: number | null;
  format: (value: number) => string;
}) {
  const [first] = points;
  const last = points.at(-1);
  if (first === undefined || last === undefined) return null;
  const peak = points.reduce((most, { value }) => Math.max(most, value), 0);
  // A limit that is far away would flatten the line.
  const top = limit !== null && peak > limit / 3 ? limit : Math.max(peak * 1.15, Number.MIN_VALUE);
  const x = (at: number): number => ((at - first.at) / Math.max(1, last.at - first.at)) * size.width;
  const y = (value: number): number => size.height - (value / top) * (size.height - 2) - 1;
  const line = points.map(({ at, value }) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  return (
    <figure className="space-y-1">
      <figcaption className="flex items-baseline gap-2 text-xs">
        <span className="font-medium">{name}</span>
        <span className="ms-auto tabular-nums">{now}</span>
        <span className="text-muted tabular-nums">↑ {format(peak)}</span>
      </figcaption>
      <svg
        aria-hidden
        viewBox={`0 0 ${size.width} ${size.height}`}
        preserveAspectRatio="none"
        className="h-12 w-full rounded bg-sunken text-accent"
      >
        <polygon points={`0,${size.height} ${line} ${size.width},${size.height}`} fill="currentColor" opacity="0.15" />
        <polyline points={line} fill="none" stroke="currentColor" strokeWidth="1.5" vectorEffect="non-scaling-stroke" />
      </svg>
    </figure>
  );
}
