import { createPrivateKey, generateKeyPairSync, sign, type KeyObject } from "node:crypto";

/** A certificate authority of a company, made for one test run. */
export interface TestAuthority {
  /** Its certificate, as PEM. */
  readonly certificate: string;
  /** A server's key and certificate for these names, as PEM. */
  serverFor(...names: string[]): { readonly key: string; readonly cert: string };
}

/** Makes an authority. The certificates are X.509 (RFC 5280) in DER, which Node can read and not write. */
export function createAuthority(name: string): TestAuthority {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const isAuthority = extension("551d13", sequence(Buffer.from([1, 1, 255])));
  const own = { issuer: name, subject: name, publicKey, privateKey };
  return {
    certificate: certificateOf({ ...own, serial: 1, extensions: [isAuthority] }),
    serverFor(...names) {
      const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const alternatives = extension("551d11", sequence(...names.map((each) => tlv(0x82, Buffer.from(each)))));
      const made = { issuer: name, subject: names[0] ?? name, publicKey: pair.publicKey, privateKey };
      return {
        key: pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
        cert: certificateOf({ ...made, serial: 2, extensions: [alternatives] }),
      };
    },
  };
}

function certificateOf(made: {
  readonly serial: number;
  readonly issuer: string;
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
  readonly extensions: readonly Buffer[];
}): string {
  const algorithm = sequence(tlv(0x06, Buffer.from("2a8648ce3d040302", "hex")));
  const content = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, Buffer.from([made.serial])),
    algorithm,
    nameOf(made.issuer),
    sequence(timeOf(-1), timeOf(2)),
    nameOf(made.subject),
    made.publicKey.export({ type: "spki", format: "der" }),
    tlv(0xa3, sequence(...made.extensions)),
  );
  const key = createPrivateKey(made.privateKey.export({ type: "pkcs8", format: "pem" }));
  const signature = tlv(0x03, Buffer.from([0]), sign("sha256", content, key));
  const encoded = sequence(content, algorithm, signature).toString("base64");
  return `-----BEGIN CERTIFICATE-----\n${encoded.replace(/.{64}(?=.)/gu, "$&\n")}\n-----END CERTIFICATE-----\n`;
}

const nameOf = (text: string): Buffer =>
  sequence(tlv(0x31, sequence(tlv(0x06, Buffer.from("550403", "hex")), tlv(0x0c, Buffer.from(text)))));

const extension = (id: string, value: Buffer): Buffer => sequence(tlv(0x06, Buffer.from(id, "hex")), tlv(0x04, value));

function timeOf(days: number): Buffer {
  const at = new Date(Date.now() + days * 86_400_000).toISOString();
  return tlv(0x17, Buffer.from(`${at.slice(2, 19).replace(/[-:T]/gu, "")}Z`));
}

const sequence = (...parts: readonly Buffer[]): Buffer => tlv(0x30, ...parts);

function tlv(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
