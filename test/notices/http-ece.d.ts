declare module "http_ece" {
  import type { ECDH } from "node:crypto";

  /** Opens a message that is encrypted as RFC 8188 and RFC 8291 have it. @throws Error if it is not */
  export function decrypt(
    message: Buffer,
    how: { readonly version: "aes128gcm"; readonly privateKey: ECDH; readonly authSecret: string },
  ): Buffer;
}
