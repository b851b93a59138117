import { crc32 } from "node:zlib";

/** A zip without compression. @param entries path and content of each file */
export function zip(entries: readonly (readonly [path: string, content: string])[]): Buffer {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, content] of entries) {
    const data = Buffer.from(content);
    const rest = Buffer.alloc(26);
    rest.writeUInt16LE(20, 0);
    rest.writeUInt32LE(crc32(data), 10);
    rest.writeUInt32LE(data.length, 14);
    rest.writeUInt32LE(data.length, 18);
    rest.writeUInt16LE(name.length, 22);
    const body = Buffer.concat([Buffer.from("PK\u0003\u0004"), rest, Buffer.from(name), data]);
    const trailer = Buffer.alloc(14);
    trailer.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from("PK\u0001\u0002\u0014\0"), rest, trailer, Buffer.from(name)]));
    bodies.push(body);
    offset += body.length;
  }
  const all = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(all.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...bodies, all, Buffer.from("PK\u0005\u0006"), end]);
}
