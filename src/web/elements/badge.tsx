const tones = {
  muted: "bg-sunken text-muted",
  accent: "bg-accent-soft text-accent",
  good: "bg-good-soft text-good",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
};
/** Colour of a badge. */
export type Tone = keyof typeof tones;

/** A state, as a word and a colour. @param moving whether the state will change without the user's doing */
export function Badge({ tone, label, moving = false }: { tone: Tone; label: string; moving?: boolean }) {
  return (
    <span
      className={`inline-flex shrink-0 items-center gap-1.5 rounded px-1.5 py-px text-xs font-medium ${tones[tone]}`}
    >
      <span aria-hidden className={`size-1.5 rounded-full bg-current ${moving ? "animate-pulse" : ""}`} />
      {label}
    </span>
  );
}
