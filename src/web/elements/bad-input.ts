/**
 * Whether a field of a form holds what is no number. It would be sent as if the field were empty, which takes a limit away; so the browser says it at
 * that field, and nothing is to be sent.
 */
export function hasBadInput(form: HTMLFormElement): boolean {
  const bad = [...form.querySelectorAll("input")].find(({ validity }) => validity.badInput || validity.patternMismatch);
  return bad?.reportValidity() === false;
}
