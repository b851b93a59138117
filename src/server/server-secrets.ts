import type { Config } from "../config/config.ts";

/** The password of an address, as it is written there and as it is. */
function passwordsIn(address: string | null): string[] {
  const password = (address === null ? null : URL.parse(address))?.password ?? "";
  if (password === "") return [];
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    return [password];
  }
}

/** Values that must never be stored or logged: the mask removes them from all output. */
export function serverSecrets(config: Config): string[] {
  const { anthropic, openai, google, compatible } = config.models;
  const forgeSecrets = config.forges.flatMap((forge) =>
    forge.kind === "github" ? [forge.token, forge.app?.privateKey] : [forge.token],
  );
  const customSecrets = config.customProviders.flatMap(({ environment }) =>
    Object.entries(environment).flatMap(([name, value]) => (/key|token|secret|password/iu.test(name) ? [value] : [])),
  );
  return [
    ...(config.masterKey?.split(",") ?? []),
    ...passwordsIn(config.databaseUrl),
    ...passwordsIn(config.outbound.proxies.http),
    ...passwordsIn(config.outbound.proxies.https),
    config.oidc?.clientSecret,
    config.githubSignIn?.clientSecret,
    ...forgeSecrets,
    ...customSecrets,
    anthropic?.apiKey,
    openai?.apiKey,
    google?.apiKey,
    compatible?.apiKey,
    config.adminKey,
    config.metricsToken,
    config.objects?.secretAccessKey,
    config.mail?.password,
    ...Object.values(config.traces?.headers ?? {}),
  ].filter((secret) => typeof secret === "string");
}
