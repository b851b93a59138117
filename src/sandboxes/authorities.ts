import type { Sandbox } from "./sandbox.ts";

/**
 * Variables by which tools find their trusted certificates, each a file in the place of the system's: OpenSSL, Node, curl,
 * git, Python's requests and pip, Cargo, Deno, AWS.
 */
const trusting = [
  "SSL_CERT_FILE",
  "NODE_EXTRA_CA_CERTS",
  "CURL_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  "REQUESTS_CA_BUNDLE",
  "PIP_CERT",
  "CARGO_HTTP_CAINFO",
  "DENO_CERT",
  "AWS_CA_BUNDLE",
];

/** Variables that name a file of trusted certificates to tools. @param file its path, as the tools see it */
export function trustVariables(file: string): Record<string, string> {
  return Object.fromEntries(trusting.map((name) => [name, file]));
}

/**
 * A sandbox whose programs trust the operator's certificates too. Only what has a way out gets them.
 * @param file path of all trusted certificates in PEM, which the sandbox sees at the same path
 */
export function withAuthorities(sandbox: Sandbox, file: string): Sandbox {
  return {
    ...sandbox,
    start(request) {
      if (request.gateway === undefined) return sandbox.start(request);
      return sandbox.start({
        ...request,
        readOnly: [...request.readOnly, file],
        environment: { ...trustVariables(file), ...request.environment },
      });
    },
  };
}
