import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";
import { isIP } from "node:net";

/** A certificate authority whose key is in this process alone. */
export interface Authority {
  /** Its certificate, as PEM. */
  readonly certificate: string;
  /** A new key of a server with these names, and the certificate for it, both as PEM. */
  serverFor(...hosts: string[]): { readonly key: string; readonly cert: string };
}

/**
 * Makes an authority. Its certificates are X.509 (RFC 5280) in DER, which Node can read and not write, with the extensions that
 * strict readers require. All hold from yesterday on for 30 days.
 * @param name as its certificates show it
 */
export function createAuthority(name: string): Authority {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const keyId = keyIdOf(publicKey);
  const own = { issuer: name, privateKey };
  return {
    certificate: certificateOf({
      ...own,
      subject: name,
      publicKey,
      extensions: [
        critical(ids.basicConstraints, sequence(tlv(0x01, [255]))),
        // keyCertSign and cRLSign.
        critical(ids.keyUsage, tlv(0x03, [1, 0x06])),
        extension(ids.subjectKey, tlv(0x04, keyId)),
      ],
    }),
    serverFor(...hosts) {
      const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const cert = certificateOf({
        ...own,
        subject: hosts[0] ?? name,
        publicKey: pair.publicKey,
        extensions: [
          // digitalSignature, and servers' authentication.
          critical(ids.keyUsage, tlv(0x03, [7, 0x80])),
          extension(ids.extendedKeyUsage, sequence(objectId("2b06010505070301"))),
          extension(ids.authorityKey, sequence(tlv(0x80, keyId))),
          extension(ids.alternativeNames, sequence(...hosts.map(alternativeName))),
        ],
      });
      return { key: pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString(), cert };
    },
  };
}

/** Object identifiers, as their bytes. */
const ids = {
  basicConstraints: "551d13",
  keyUsage: "551d0f",
  extendedKeyUsage: "551d25",
  subjectKey: "551d0e",
  authorityKey: "551d23",
  alternativeNames: "551d11",
};

function certificateOf(made: {
  readonly issuer: string;
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
  readonly extensions: readonly Buffer[];
}): string {
  const ecdsaWithSha256 = sequence(objectId("2a8648ce3d040302"));
  const content = sequence(
    tlv(0xa0, tlv(0x02, [2])),
    tlv(0x02, [0x40, ...randomBytes(15)]),
    ecdsaWithSha256,
    nameOf(made.issuer),
    sequence(timeIn(-1), timeIn(30)),
    nameOf(made.subject),
    made.publicKey.export({ type: "spki", format: "der" }),
    tlv(0xa3, sequence(...made.extensions)),
  );
  const signature = tlv(0x03, [0, ...sign("sha256", content, made.privateKey)]);
  const encoded = sequence(content, ecdsaWithSha256, signature).toString("base64");
  return `-----BEGIN CERTIFICATE-----\n${encoded.replace(/.{64}(?=.)/gu, "$&\n")}\n-----END CERTIFICATE-----\n`;
}

const keyIdOf = (key: KeyObject): Buffer =>
  createHash("sha1")
    .update(key.export({ type: "spki", format: "der" }))
    .digest();

const nameOf = (text: string): Buffer =>
  sequence(tlv(0x31, sequence(objectId("550403"), tlv(0x0c, Buffer.from(text)))));

const alternativeName = (host: string): Buffer =>
  isIP(host) === 4 ? tlv(0x87, host.split(".").map(Number)) : tlv(0x82, Buffer.from(host));

const extension = (id: string, value: Buffer): Buffer => sequence(objectId(id), tlv(0x04, value));
const critical = (id: string, value: Buffer): Buffer => sequence(objectId(id), tlv(0x01, [255]), tlv(0x04, value));

function timeIn(days: number): Buffer {
  const at = new Date(Date.now() + days * 86_400_000).toISOString();
  return tlv(0x17, Buffer.from(`${at.slice(2, 19).replace(/[-:T]/gu, "")}Z`));
}

const objectId = (hex: string): Buffer => tlv(0x06, Buffer.from(hex, "hex"));
const sequence = (...parts: readonly Buffer[]): Buffer => tlv(0x30, Buffer.concat(parts));

/** One value in DER: its tag, its length, its content (ITU-T X.690, section 8.1). */
function tlv(tag: number, content: Buffer | readonly number[]): Buffer {
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), Buffer.from(content)]);
}
