/**
 * Marks what the user has not looked at yet, beside words that say so. It is a border, which stays if a system sets all
 * backgrounds.
 */
export function UnreadDot() {
  return (
    <span aria-hidden className="inline-block size-2 shrink-0 align-[0.1em] rounded-full border-4 border-accent" />
  );
}
