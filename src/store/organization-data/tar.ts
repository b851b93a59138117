/** Size of a tar archive's blocks, in bytes. */
const blockBytes = 512;

/**
 * The header of a file in a tar archive (POSIX.1-1988, ustar: https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html).
 * @param name path of ASCII characters, at most 100 of them
 * @param bytes of the file's content; from 8 GiB on, which the format has no digits for, as GNU, BSD and Python's tar read it
 * @param modifiedAt of the file
 */
export function tarHeader(name: string, bytes: number, modifiedAt: Date): Buffer {
  if (name.length > 100) throw new RangeError(`${name} does not fit into a tar archive`);
  const header = Buffer.alloc(blockBytes);
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, "0")}\0`;
  header.write(name, 0, "ascii");
  header.write(octal(0o600, 7), 100, "ascii");
  // Owner and group: root's number, so that no user of this machine is named.
  header.write(octal(0, 7) + octal(0, 7), 108, "ascii");
  header.write(octal(bytes % 8 ** 11, 11) + octal(Math.floor(modifiedAt.getTime() / 1_000), 11), 124, "ascii");
  if (bytes >= 8 * 1024 ** 3) {
    // In base 256, which the first bit says.
    header.fill(0, 124, 136).writeUInt8(0x80, 124);
    header.writeBigUInt64BE(BigInt(bytes), 128);
  }
  // The checksum is counted with spaces in its own place.
  header.write(" ".repeat(8), 148, "ascii");
  header.write("0", 156, "ascii");
  header.write("ustar\x0000", 257, "ascii");
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "ascii");
  return header;
}

/** The padding after a file's content up to the next block. */
export function tarPadding(bytes: number): Buffer {
  return Buffer.alloc((blockBytes - (bytes % blockBytes)) % blockBytes);
}

/** The end of an archive. */
export const tarEnd = Buffer.alloc(2 * blockBytes);
