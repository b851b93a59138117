import { createHash } from "node:crypto";

/**
 * The id of a ledger entry or job that several workers may write: always the same for what it comes of, so that it is written once.
 * @param origin names what it comes of, such as an event and a trigger. Entries are found again by it: never change its form
 * @returns a UUID of version 8 (RFC 9562, appendix B.2)
 */
export function derivedId(origin: string): string {
  const bytes = createHash("sha256").update(origin).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/u, "$1-$2-$3-$4-$5");
}
