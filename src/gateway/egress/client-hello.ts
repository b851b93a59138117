/** What the first message of a TLS connection says of the server that it is meant for. */
export interface ClientHello {
  /** The name in the clear (RFC 6066, section 3), in lower case; null if there is none. */
  readonly serverName: string | null;
  /** Whether another name may be hidden in it (Encrypted Client Hello, RFC 9849). */
  readonly hidesName: boolean;
  /** How many bytes of the connection the message took, with all before it. */
  readonly length: number;
}

/** `incomplete`: more bytes are needed to say. `broken`: it is no ClientHello, whatever follows. */
export type ReadClientHello = ClientHello | "incomplete" | "broken";

const recordTypes = { changeCipherSpec: 20, alert: 21, handshake: 22, applicationData: 23 } as const;
const messageTypes = { helloRequest: 0, clientHello: 1, serverHello: 2 } as const;
const alerts = { warning: 1, closeNotify: 0 } as const;
const extensionTypes = { serverName: 0, encryptedClientHello: 0xfe_0d } as const;
const recordHeaderBytes = 5;
const messageHeaderBytes = 4;
/** RFC 8446, section 5.1: a record of plain text holds no more. */
const longestRecord = 16_384;
/** Programs send at most about 2 KiB. */
const longestHello = 65_536;
/** The random of a ServerHello that asks for another ClientHello (RFC 8446, section 4.1.3). */
const retryRandom = Buffer.from("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c", "hex");

/** Whether a connection whose first bytes these are is one of TLS; null without a byte. */
export function isTls(bytes: Buffer): boolean | null {
  return bytes.length === 0 ? null : bytes[0] === recordTypes.handshake;
}

/**
 * Reads the ClientHello (RFC 8446, section 4.1.2) at the beginning of what a client sends. It may be spread over records.
 * What servers could read in two ways (an extension or a name twice, bytes left over) is broken.
 * @param options.again reads the second one, which a server asked for: records of other kinds may stand before it
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
  // Another message behind it in the same record.
  if (gathered > needed) return "broken";
  const names = readNames(Buffer.concat(handshake).subarray(messageHeaderBytes));
  return names === null ? "broken" : { ...names, length: at };
}

/**
 * Whether a server's first bytes ask the client for another ClientHello (HelloRetryRequest). What a client passes over before
 * it is passed over here too, and the message may be spread over records: a warning, a ChangeCipherSpec, a HelloRequest.
 * @returns null if more bytes are needed to say
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

/** After which the handshake goes on (RFC 5246, section 7.2); after every other alert nothing does. */
const isWarning = (alert: Buffer): boolean =>
  alert.length === 2 && alert[0] === alerts.warning && alert[1] !== alerts.closeNotify;

/** As much as is there of a record's content. */
function beginningOf(bytes: Buffer, at: number): Buffer {
  const from = at + recordHeaderBytes;
  return bytes.length < from ? Buffer.alloc(0) : bytes.subarray(from, from + bytes.readUInt16BE(at + 3));
}

/** @returns null if more of the handshake is needed to say */
function isRetry(handshake: Buffer): boolean | null {
  let at = 0;
  // One that comes while a client shakes hands is ignored (RFC 5246, section 7.4.1.1).
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
  // What is encrypted may be longer by what encryption adds.
  if (bytes.readUInt8(at + 1) !== 3 || length > longestRecord + 256) return "broken";
  const from = at + recordHeaderBytes;
  return bytes.length < from + length ? "incomplete" : { type, content: bytes.subarray(from, from + length) };
}

/** Reads values with their lengths before them; null once it is asked for more than there is. */
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

  /** @param lengthBytes of the number before it that says its length */
  vector(lengthBytes: 1 | 2): Buffer | null {
    const length = this.number(lengthBytes);
    return length === null ? null : this.take(length);
  }
}

/** @returns null for a body that is not whole, or has something twice */
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

/** The one host name of the extension; null if it is anything else. */
function readServerName(extension: Buffer): string | null {
  const outer = new Vectors(extension);
  const list = outer.vector(2);
  if (list === null || !outer.isAtEnd) return null;
  const names = new Vectors(list);
  const [type, name] = [names.number(1), names.vector(2)];
  if (type !== 0 || name === null || !names.isAtEnd) return null;
  const text = name.toString("latin1").toLowerCase();
  return /^[\w.-]+$/u.test(text) ? text : null;
}
