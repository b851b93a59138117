/** The server's name and protocols in the first message of a TLS connection. */
export interface ClientHello {
  /** The server name indication in the clear (RFC 6066, section 3), in lower case; null if there is none. */
  readonly serverName: string | null;
  /** Whether it may contain a hidden name (Encrypted Client Hello, RFC 9849). */
  readonly hidesName: boolean;
  /** Bytes of the connection up to the message's end. */
  readonly length: number;
}

/** `incomplete`: more bytes are needed. `broken`: it is not a ClientHello, whatever follows. */
export type ReadClientHello = ClientHello | "incomplete" | "broken";

const recordTypes = { changeCipherSpec: 20, alert: 21, handshake: 22, applicationData: 23 } as const;
const messageTypes = { helloRequest: 0, clientHello: 1, serverHello: 2 } as const;
const alerts = { warning: 1, closeNotify: 0 } as const;
const extensionTypes = { serverName: 0, encryptedClientHello: 0xfe_0d } as const;
const recordHeaderBytes = 5;
const messageHeaderBytes = 4;
/** Maximum of a plaintext record (RFC 8446, section 5.1). */
const longestRecord = 16_384;
/** Maximum of a ClientHello; programs send at most about 2 KiB. */
const longestHello = 65_536;
/** RFC 1035, section 2.3.4. A refused name is reported in an event. */
const longestName = 255;
/** The random of a ServerHello that asks for another ClientHello (RFC 8446, section 4.1.3). */
const retryRandom = Buffer.from("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c", "hex");

/** Whether a connection that begins with these bytes is TLS; null if there are none. */
export function isTls(bytes: Buffer): boolean | null {
  return bytes.length === 0 ? null : bytes[0] === recordTypes.handshake;
}

/**
 * Parses the ClientHello (RFC 8446, section 4.1.2) at the beginning of a client's bytes. It may be spread over records.
 * What servers could parse in two ways (a duplicate extension or name, trailing bytes) is broken.
 * @param options.again parses a second ClientHello, after a HelloRetryRequest: records of other types may precede it
 */
export function readClientHello(
  bytes: Buffer,
  options: { readonly again: boolean } = { again: false },
): ReadClientHello {
  const handshake: Buffer[] = [];
  let gathered = 0;
  let needed = messageHeaderBytes;
  let at = 0;
  while (gathered < needed) {
    const record = readRecord(bytes, at);
    if (record === "incomplete" || record === "broken") return record;
    at += recordHeaderBytes + record.content.length;
    const isBefore = options.again && gathered === 0 && record.type !== recordTypes.handshake;
    if (isBefore && (record.type === recordTypes.changeCipherSpec || record.type === recordTypes.applicationData))
      continue;
    if (record.type !== recordTypes.handshake || record.content.length === 0) return "broken";
    handshake.push(record.content);
    gathered += record.content.length;
    if (needed === messageHeaderBytes && gathered >= messageHeaderBytes) {
      const header = Buffer.concat(handshake);
      if (header[0] !== messageTypes.clientHello) return "broken";
      needed = messageHeaderBytes + header.readUIntBE(1, 3);
      if (needed > longestHello) return "broken";
    }
  }
  // Another message follows in the same record.
  if (gathered > needed) return "broken";
  const names = readNames(Buffer.concat(handshake).subarray(messageHeaderBytes));
  return names === null ? "broken" : { ...names, length: at };
}

/**
 * Whether a server's first bytes are a HelloRetryRequest. Skips what clients skip before it (a warning, a
 * ChangeCipherSpec, a HelloRequest); the message may be spread over records.
 * @returns null if more bytes are needed
 */
export function asksForAnother(bytes: Buffer): boolean | null {
  let handshake = Buffer.alloc(0);
  for (let at = 0; at < bytes.length;) {
    const type = bytes.readUInt8(at);
    if (type === recordTypes.handshake) handshake = Buffer.concat([handshake, beginningOf(bytes, at)]);
    const asks = isRetry(handshake);
    if (asks !== null) return asks;
    const record = readRecord(bytes, at);
    if (!isPassedOver(type) || record === "broken") return false;
    if (record === "incomplete") return null;
    if (type === recordTypes.alert && !isWarning(record.content)) return false;
    at += recordHeaderBytes + record.content.length;
  }
  return null;
}

const isPassedOver = (type: number): boolean =>
  type === recordTypes.handshake || type === recordTypes.changeCipherSpec || type === recordTypes.alert;

/** The handshake continues after a warning (RFC 5246, section 7.2), but after no other alert. */
const isWarning = (alert: Buffer): boolean =>
  alert.length === 2 && alert[0] === alerts.warning && alert[1] !== alerts.closeNotify;

/** The part of a record's content that has arrived. */
function beginningOf(bytes: Buffer, at: number): Buffer {
  const from = at + recordHeaderBytes;
  return bytes.length < from ? Buffer.alloc(0) : bytes.subarray(from, from + bytes.readUInt16BE(at + 3));
}

/** @returns null if more of the handshake is needed */
function isRetry(handshake: Buffer): boolean | null {
  let at = 0;
  // Clients ignore a HelloRequest during a handshake (RFC 5246, section 7.4.1.1).
  while (handshake[at] === messageTypes.helloRequest) at += messageHeaderBytes;
  if (at >= handshake.length) return null;
  if (handshake[at] !== messageTypes.serverHello) return false;
  const randomAt = at + messageHeaderBytes + 2;
  if (handshake.length < randomAt + retryRandom.length) return null;
  return handshake.subarray(randomAt, randomAt + retryRandom.length).equals(retryRandom);
}

interface TlsRecord {
  readonly type: number;
  readonly content: Buffer;
}

function readRecord(bytes: Buffer, at: number): TlsRecord | "incomplete" | "broken" {
  if (bytes.length < at + recordHeaderBytes) return "incomplete";
  const type = bytes.readUInt8(at);
  const length = bytes.readUInt16BE(at + 3);
  // Encryption may add up to 256 bytes to a record.
  if (bytes.readUInt8(at + 1) !== 3 || length > longestRecord + 256) return "broken";
  const from = at + recordHeaderBytes;
  return bytes.length < from + length ? "incomplete" : { type, content: bytes.subarray(from, from + length) };
}

/** Reads length-prefixed values; null if there are not enough bytes. */
class Vectors {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  take(length: number): Buffer | null {
    if (this.#at + length > this.#bytes.length) return null;
    const taken = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return taken;
  }

  number(length: 1 | 2): number | null {
    return this.take(length)?.readUIntBE(0, length) ?? null;
  }

  /** @param lengthBytes size of the length prefix */
  vector(lengthBytes: 1 | 2): Buffer | null {
    const length = this.number(lengthBytes);
    return length === null ? null : this.take(length);
  }
}

/** @returns null if the body is incomplete, or has a duplicate */
function readNames(body: Buffer): Pick<ClientHello, "serverName" | "hidesName"> | null {
  const message = new Vectors(body);
  const versionAndRandom = message.take(2 + 32);
  const beforeExtensions = [message.vector(1), message.vector(2), message.vector(1)];
  if (versionAndRandom === null || beforeExtensions.includes(null)) return null;
  // Before TLS 1.2 a message could end here.
  if (message.isAtEnd) return { serverName: null, hidesName: false };
  const list = message.vector(2);
  if (list === null || !message.isAtEnd) return null;
  const extensions = new Map<number, Buffer>();
  for (const rest = new Vectors(list); !rest.isAtEnd;) {
    const [type, content] = [rest.number(2), rest.vector(2)];
    if (type === null || content === null || extensions.has(type)) return null;
    extensions.set(type, content);
  }
  const hidesName = extensions.has(extensionTypes.encryptedClientHello);
  const named = extensions.get(extensionTypes.serverName);
  if (named === undefined) return { serverName: null, hidesName };
  const serverName = readServerName(named);
  return serverName === null ? null : { serverName, hidesName };
}

/** The extension's only host name; null if it has another form. */
function readServerName(extension: Buffer): string | null {
  const outer = new Vectors(extension);
  const list = outer.vector(2);
  if (list === null || !outer.isAtEnd) return null;
  const names = new Vectors(list);
  const [type, name] = [names.number(1), names.vector(2)];
  if (type !== 0 || name === null || !names.isAtEnd) return null;
  const text = name.toString("latin1").toLowerCase();
  return text.length <= longestName && /^[\w.-]+$/u.test(text) ? text : null;
}
