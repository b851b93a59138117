/** Whether the text is written as a UUID (RFC 9562, section 4), as all ids are. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/iu.test(text);
}
