/** For an option that may be repeated: all of its values. */
export function collect(value: string, before: readonly string[] | false = []): string[] {
  return [...(before === false ? [] : before), value];
}
