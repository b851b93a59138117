import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { InvalidInputError } from "../domain/errors/errors.ts";
import type { Outbound } from "../outbound/process-wide.ts";
import type { Variables } from "./variables.ts";

// Settings that consist of several variables.

/**
 * Whether all of these variables are set.
 * @throws InvalidInputError if only some are set
 */
function together(variables: Variables, named: readonly (keyof Variables)[]): boolean {
  const missing = named.find((name) => variables[name] === undefined);
  const present = named.find((name) => variables[name] !== undefined);
  if (present === undefined) return false;
  if (missing !== undefined) throw new InvalidInputError(`${missing}: must be set beside ${present}`);
  return true;
}

/**
 * Settings of the object store; null if it is not configured.
 * @throws InvalidInputError if a variable is missing
 */
export function objectsOf(variables: Variables) {
  const { OFFSTAGE_S3_ENDPOINT: endpoint = "", OFFSTAGE_S3_BUCKET: bucket = "" } = variables;
  const { OFFSTAGE_S3_ACCESS_KEY_ID: accessKeyId = "", OFFSTAGE_S3_SECRET_ACCESS_KEY: secretAccessKey = "" } =
    variables;
  const { OFFSTAGE_S3_PREFIX: prefix = "" } = variables;
  const isSet = together(variables, [
    "OFFSTAGE_S3_ENDPOINT",
    "OFFSTAGE_S3_BUCKET",
    "OFFSTAGE_S3_ACCESS_KEY_ID",
    "OFFSTAGE_S3_SECRET_ACCESS_KEY",
  ]);
  if (!isSet) return null;
  return {
    endpoint: endpoint.replace(/\/+$/u, ""),
    bucket,
    region: variables.OFFSTAGE_S3_REGION,
    accessKeyId,
    secretAccessKey,
    /** Prefix of every key; empty, or with a trailing slash. */
    prefix: prefix === "" ? "" : `${prefix.replace(/\/+$/u, "")}/`,
  };
}

/**
 * The operator's mail server, and who writes; null: no mail is sent.
 * @throws InvalidInputError if only one of both is set
 */
export function mailOf(variables: Variables) {
  if (!together(variables, ["OFFSTAGE_SMTP_URL", "OFFSTAGE_MAIL_FROM"])) return null;
  const { protocol, hostname, port, username, password, searchParams } = new URL(variables.OFFSTAGE_SMTP_URL ?? "");
  const isSecure = protocol === "smtps:";
  const tls: "always" | "startTls" | "none" = isSecure
    ? "always"
    : searchParams.get("tls") === "none"
      ? "none"
      : "startTls";
  return {
    host: hostname.replace(/^\[|\]$/gu, ""),
    port: port === "" ? (isSecure ? 465 : 587) : Number(port),
    tls,
    user: username === "" ? null : decodeURIComponent(username),
    password: password === "" ? null : decodeURIComponent(password),
    from: variables.OFFSTAGE_MAIL_FROM ?? "",
  };
}

/**
 * Settings of the sign-in by identity providers; `oidc` and `githubSignIn` are null if not configured.
 * @throws InvalidInputError if a variable is missing
 */
export function signInOf(variables: Variables) {
  const lower = (values: readonly string[]): string[] => values.map((value) => value.toLowerCase());
  const { OFFSTAGE_OIDC_ISSUER: issuer = "", OFFSTAGE_OIDC_CLIENT_ID: oidcId = "" } = variables;
  const { OFFSTAGE_OIDC_CLIENT_SECRET: oidcSecret = "", OFFSTAGE_GITHUB_OAUTH_CLIENT_ID: githubId = "" } = variables;
  const { OFFSTAGE_GITHUB_OAUTH_CLIENT_SECRET: githubSecret = "" } = variables;
  const githubOrganizations = lower(variables.OFFSTAGE_SIGN_IN_GITHUB_ORGANIZATIONS);
  return {
    oidc: together(variables, ["OFFSTAGE_OIDC_ISSUER", "OFFSTAGE_OIDC_CLIENT_ID", "OFFSTAGE_OIDC_CLIENT_SECRET"])
      ? {
          issuer,
          clientId: oidcId,
          clientSecret: oidcSecret,
          name: variables.OFFSTAGE_OIDC_NAME,
          trustEmail: variables.OFFSTAGE_OIDC_TRUST_EMAIL,
        }
      : null,
    githubSignIn: together(variables, ["OFFSTAGE_GITHUB_OAUTH_CLIENT_ID", "OFFSTAGE_GITHUB_OAUTH_CLIENT_SECRET"])
      ? {
          webUrl: variables.OFFSTAGE_GITHUB_OAUTH_URL,
          apiUrl: variables.OFFSTAGE_GITHUB_OAUTH_API_URL,
          clientId: githubId,
          clientSecret: githubSecret,
          asksOrganizations: githubOrganizations.length > 0,
        }
      : null,
    signInPolicy: {
      admins: lower(variables.OFFSTAGE_ADMINS),
      domains: lower(variables.OFFSTAGE_SIGN_IN_DOMAINS),
      githubOrganizations,
      defaultRole: variables.OFFSTAGE_DEFAULT_ROLE,
    },
  };
}

/**
 * Settings of the forges, always with one for github.com.
 * @throws InvalidInputError if the GitHub App's private key is missing or can't be read
 */
export function forgeSettingsOf(variables: Variables) {
  const forges = [...(variables.OFFSTAGE_FORGES ?? [])];
  const github = { kind: "github", webUrl: "https://github.com", apiUrl: "https://api.github.com" } as const;
  if (variables.OFFSTAGE_GITHUB_APP_ID !== undefined) {
    const file = variables.OFFSTAGE_GITHUB_APP_PRIVATE_KEY_FILE;
    if (file === undefined) {
      throw new InvalidInputError("OFFSTAGE_GITHUB_APP_PRIVATE_KEY_FILE: must be set beside OFFSTAGE_GITHUB_APP_ID");
    }
    const privateKey = readSetting("OFFSTAGE_GITHUB_APP_PRIVATE_KEY_FILE", file);
    forges.push({ ...github, app: { id: variables.OFFSTAGE_GITHUB_APP_ID, privateKey } });
  } else if (!forges.some((forge) => forge.webUrl === github.webUrl)) {
    forges.push(variables.GITHUB_TOKEN === undefined ? github : { ...github, token: variables.GITHUB_TOKEN });
  }
  const gitlab = { kind: "gitlab", webUrl: "https://gitlab.com", apiUrl: "https://gitlab.com/api/v4" } as const;
  if (variables.GITLAB_TOKEN !== undefined && !forges.some((forge) => forge.webUrl === gitlab.webUrl))
    forges.push({ ...gitlab, token: variables.GITLAB_TOKEN });
  return forges;
}

/** Reads the file that a variable names. @throws InvalidInputError if it can't be read */
function readSetting(variable: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new InvalidInputError(`${variable}: ${path} can't be read`, { cause });
  }
}

/**
 * How git reaches hosts by ssh.
 * @throws InvalidInputError if a file is missing, or a key's file holds no private key
 */
export function sshOf(variables: Variables) {
  const { OFFSTAGE_SSH_KEYS: named = {}, OFFSTAGE_SSH_KNOWN_HOSTS: file, SSH_AUTH_SOCK: agent = null } = variables;
  if (file !== undefined) readSetting("OFFSTAGE_SSH_KNOWN_HOSTS", file);
  const keys = Object.fromEntries(Object.entries(named).map(([host, path]) => [host, resolve(path)]));
  for (const [host, path] of Object.entries(keys)) {
    const text = readSetting(`OFFSTAGE_SSH_KEYS.${host}`, path);
    // With an agent the public half is enough.
    if (!text.includes("PRIVATE KEY-----") && !(agent !== null && /^(?:ssh|ecdsa|sk)-\S+ /u.test(text))) {
      throw new InvalidInputError(`OFFSTAGE_SSH_KEYS.${host}: ${path} holds no private key`);
    }
  }
  return { keys, knownHosts: file === undefined ? null : resolve(file), agent };
}

/**
 * How the server reaches the outside: proxies, and certificates that it trusts in addition to the usual ones.
 * @throws InvalidInputError if OFFSTAGE_CA_FILE can't be read, or holds no certificate
 */
export function outboundOf(variables: Variables): Outbound {
  const { HTTPS_PROXY: https = null, HTTP_PROXY: http = null, NO_PROXY: direct, OFFSTAGE_CA_FILE: file } = variables;
  return { proxies: { http, https, direct }, authorities: file === undefined ? [] : authoritiesIn(file) };
}

function authoritiesIn(file: string): string[] {
  const text = readSetting("OFFSTAGE_CA_FILE", file);
  const found = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/gu) ?? [];
  if (found.length === 0) {
    throw new InvalidInputError(
      `OFFSTAGE_CA_FILE: ${file} has no certificate: it must be PEM (-----BEGIN CERTIFICATE-----)`,
    );
  }
  for (const certificate of found) {
    try {
      void new X509Certificate(certificate);
    } catch (cause) {
      throw new InvalidInputError(`OFFSTAGE_CA_FILE: ${file} has a certificate that can't be read`, { cause });
    }
  }
  return found;
}

/** Keys and addresses of the model providers that are configured. */
export function modelsOf(variables: Variables) {
  return {
    ...(variables.ANTHROPIC_API_KEY !== undefined && {
      anthropic: {
        apiKey: variables.ANTHROPIC_API_KEY,
        ...(variables.ANTHROPIC_BASE_URL !== undefined && { baseUrl: variables.ANTHROPIC_BASE_URL }),
      },
    }),
    ...(variables.OPENAI_API_KEY !== undefined && {
      openai: {
        apiKey: variables.OPENAI_API_KEY,
        ...(variables.OPENAI_BASE_URL !== undefined && { baseUrl: variables.OPENAI_BASE_URL }),
      },
    }),
    ...(variables.GEMINI_API_KEY !== undefined && {
      google: {
        apiKey: variables.GEMINI_API_KEY,
        ...(variables.GOOGLE_GEMINI_BASE_URL !== undefined && { baseUrl: variables.GOOGLE_GEMINI_BASE_URL }),
      },
    }),
    ...(variables.OFFSTAGE_MODEL_BASE_URL !== undefined && {
      compatible: {
        baseUrl: variables.OFFSTAGE_MODEL_BASE_URL,
        ...(variables.OFFSTAGE_MODEL_API_KEY !== undefined && { apiKey: variables.OFFSTAGE_MODEL_API_KEY }),
        ...(variables.OFFSTAGE_MODEL !== undefined && { model: variables.OFFSTAGE_MODEL }),
      },
    }),
  };
}
