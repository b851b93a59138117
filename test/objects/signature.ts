import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/** A request as it came, for the check of its signature. */
export interface SignedRequest {
  readonly method: string;
  /** Path and query as they were sent. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** The code of S3's for what is wrong with it. */
export type SignatureProblem =
  | "AccessDenied"
  | "InvalidAccessKeyId"
  | "AuthorizationHeaderMalformed"
  | "RequestTimeTooSkewed"
  | "SignatureDoesNotMatch";

const skewMs = 15 * 60 * 1_000;
const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
const mac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

/**
 * Checks AWS Signature Version 4 as a store does, by the description that AWS publishes; written apart from what signs.
 * @returns what is wrong; null if all is well
 */
export function signatureProblem(
  { method, target, headers }: SignedRequest,
  keys: { readonly accessKeyId: string; readonly secretAccessKey: string; readonly region: string },
  now: Date,
): SignatureProblem | null {
  const said =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/u.exec(
      headers["authorization"] ?? "",
    );
  const date = headers["x-amz-date"] ?? "";
  const time = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/u.exec(date);
  if (said === null || time === null) return "AccessDenied";
  const [, accessKeyId, day = "", region, signedHeaders = "", signature = ""] = said;
  if (accessKeyId !== keys.accessKeyId) return "InvalidAccessKeyId";
  if (region !== keys.region) return "AuthorizationHeaderMalformed";
  const [, year, month, date1, hour, minute, second] = time.map(Number);
  const signedAt = Date.UTC(year ?? 0, (month ?? 1) - 1, date1, hour, minute, second);
  if (Math.abs(signedAt - now.getTime()) > skewMs || !date.startsWith(day)) return "RequestTimeTooSkewed";
  const names = signedHeaders.split(";");
  // What is not signed could be changed on the way.
  const mustBe = ["host", ...Object.keys(headers).filter((name) => name.startsWith("x-amz-"))];
  if (mustBe.some((name) => !names.includes(name))) return "AccessDenied";
  const [path = "", query = ""] = target.split("?");
  const request = [
    method,
    path,
    query.split("&").sort().join("&"),
    ...names.map((name) => `${name}:${(headers[name] ?? "").trim().replaceAll(/ +/gu, " ")}`),
    "",
    signedHeaders,
    headers["x-amz-content-sha256"] ?? "",
  ].join("\n");
  const scope = `${day}/${keys.region}/s3/aws4_request`;
  const key = [day, keys.region, "s3", "aws4_request"].reduce<string | Buffer>(mac, `AWS4${keys.secretAccessKey}`);
  const expected = mac(key, ["AWS4-HMAC-SHA256", date, scope, hash(request)].join("\n"));
  return timingSafeEqual(expected, Buffer.from(signature, "hex")) ? null : "SignatureDoesNotMatch";
}
