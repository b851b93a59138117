import { expect, test } from "vitest";
import { readConfig, unknownVariables } from "./config.ts";

const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318/" };

test("headers for the collector are read as OpenTelemetry writes them", () => {
  const headers = "api-key=abc%2Cdef== , x-team = agents";
  expect(readConfig({ ...collector, OTEL_EXPORTER_OTLP_HEADERS: headers }).traces).toEqual({
    endpoint: "http://127.0.0.1:4318",
    headers: { "api-key": "abc,def==", "x-team": "agents" },
    serviceName: "offstage",
    share: 1,
  });
});

test("without a collector there are no traces, whatever else is set", () => {
  expect(readConfig({ OTEL_SERVICE_NAME: "x" }).traces).toBeNull();
});

const objectStore = {
  OFFSTAGE_S3_ENDPOINT: "https://s3.example.com/storage/",
  OFFSTAGE_S3_BUCKET: "artifacts",
  OFFSTAGE_S3_ACCESS_KEY_ID: "id",
  OFFSTAGE_S3_SECRET_ACCESS_KEY: "secret",
};

test("an object store has a region, and a prefix with a slash at its end", () => {
  expect(readConfig(objectStore).objects).toEqual({
    endpoint: "https://s3.example.com/storage",
    bucket: "artifacts",
    region: "us-east-1",
    accessKeyId: "id",
    secretAccessKey: "secret",
    prefix: "",
  });
  for (const prefix of ["of/this", "of/this/"])
    expect(readConfig({ ...objectStore, OFFSTAGE_S3_PREFIX: prefix }).objects?.prefix).toBe("of/this/");
});

test("without its settings there is no object store, and with some of them the others are asked for", () => {
  expect(readConfig({ OFFSTAGE_S3_REGION: "eu-west-1", OFFSTAGE_S3_PREFIX: "x" }).objects).toBeNull();
  for (const name of Object.keys(objectStore))
    expect(() => readConfig({ ...objectStore, [name]: "" })).toThrow(`${name}: must be set beside OFFSTAGE_S3_`);
});

test("a misspelt variable is distinguished from settings, those of the command line and those of other programs", () => {
  const variables = { OFFSTAGE_PORT: "1", OFFSTAGE_CONCURENCY: "4", OFFSTAGE_API_KEY: "ofs_x", OTHER_CONCURENCY: "4" };
  expect(unknownVariables(variables)).toEqual(["OFFSTAGE_CONCURENCY"]);
});

test("a forge's addresses may end with a slash, as they are copied from a browser", () => {
  const forge = { kind: "gitea", webUrl: "https://git.example.com/", apiUrl: "https://git.example.com/api/v1/" };
  expect(readConfig({ OFFSTAGE_FORGES: JSON.stringify([forge]) }).forges[0]).toEqual({
    kind: "gitea",
    webUrl: "https://git.example.com",
    apiUrl: "https://git.example.com/api/v1",
  });
});

test("a token of gitlab.com is enough, and one that OFFSTAGE_FORGES gives it counts more", () => {
  const gitlab = { kind: "gitlab", webUrl: "https://gitlab.com", apiUrl: "https://gitlab.com/api/v4" };
  const gitlabOf = (variables: Record<string, string>) =>
    readConfig(variables).forges.filter(({ webUrl }) => webUrl === gitlab.webUrl);
  expect(gitlabOf({})).toEqual([]);
  expect(gitlabOf({ GITLAB_TOKEN: "glpat-x" })).toEqual([{ ...gitlab, token: "glpat-x" }]);
  const other = { ...gitlab, token: "glpat-y" };
  expect(gitlabOf({ GITLAB_TOKEN: "glpat-x", OFFSTAGE_FORGES: JSON.stringify([other]) })).toEqual([other]);
});

test.each([
  [{ ...objectStore, OFFSTAGE_S3_ENDPOINT: "s3.example.com" }, "OFFSTAGE_S3_ENDPOINT: must be an http:// or https://"],
  [{ ...objectStore, OFFSTAGE_S3_ENDPOINT: "https://id:key@s3.example.com" }, "must be an address alone"],
  [{ ...objectStore, OFFSTAGE_S3_BUCKET: "a/b" }, "OFFSTAGE_S3_BUCKET: must be a bucket's name"],
  [{ ...objectStore, OFFSTAGE_S3_REGION: "eu west" }, "OFFSTAGE_S3_REGION"],
  [{ ...objectStore, OFFSTAGE_S3_PREFIX: "../up" }, "OFFSTAGE_S3_PREFIX"],
  [
    { ...objectStore, OFFSTAGE_S3_SECRET_ACCESS_KEY: "sec ret" },
    "OFFSTAGE_S3_SECRET_ACCESS_KEY: must not contain white space",
  ],
  [{ ...collector, OTEL_EXPORTER_OTLP_HEADERS: "just-a-key" }, "OTEL_EXPORTER_OTLP_HEADERS: must be written"],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317" }, "OTEL_EXPORTER_OTLP_ENDPOINT: must be an http:// or https://"],
  [{ ...collector, OTEL_TRACES_SAMPLER_ARG: "2" }, "OTEL_TRACES_SAMPLER_ARG"],
  [{ OFFSTAGE_METRICS_TOKEN: "short" }, "OFFSTAGE_METRICS_TOKEN: must be at least 16 characters"],
  [{ OFFSTAGE_METRICS_PORT: "70000" }, "OFFSTAGE_METRICS_PORT: must be at most 65535"],
  [{ OFFSTAGE_PORT: "abc" }, "OFFSTAGE_PORT: must be a number"],
  [{ OFFSTAGE_SANDBOX: "docker" }, "OFFSTAGE_SANDBOX: must be bubblewrap, container or none"],
  [{ OFFSTAGE_PUBLIC_URL: "offstage.example" }, "OFFSTAGE_PUBLIC_URL: must be a URL, such as https://host.example"],
  [{ OFFSTAGE_FORGES: '[{"kind":"git","webURL":"https://x.example"}]' }, "OFFSTAGE_FORGES.0.webUrl: is required"],
  [
    {
      OFFSTAGE_FORGES: '[{"kind":"azure","webUrl":"https://acme.visualstudio.com","apiUrl":"https://dev.azure.com"}]',
    },
    "OFFSTAGE_FORGES.0.webUrl: must be written https://dev.azure.com/<organization>",
  ],
  [
    { OFFSTAGE_FORGES: '[{"kind":"svn"}]' },
    "OFFSTAGE_FORGES.0.kind: must be azure, github, gitlab, gitea, bitbucket, bitbucketDataCenter or git",
  ],
  [{ OFFSTAGE_PROVIDERS: '[{"id":"qwen"}]' }, "OFFSTAGE_PROVIDERS.0.command: is required"],
  [{ OFFSTAGE_PRICES: '{"qwen*":{"input":"1"}}' }, "OFFSTAGE_PRICES.qwen*.input: must be a number"],
  [{ HTTPS_PROXY: "socks5://proxy.example:1080" }, "HTTPS_PROXY: must be an http:// or https:// address"],
  [{ HTTPS_PROXY: "http://me:50%@proxy:3128" }, "HTTPS_PROXY: has a % in its user or password"],
  [{ OFFSTAGE_CA_FILE: "/no/such/file" }, "OFFSTAGE_CA_FILE: /no/such/file can't be read"],
  [{ OFFSTAGE_CA_FILE: import.meta.filename }, "has no certificate: it must be PEM"],
  [
    { OFFSTAGE_SSH_KEYS: '{"git.example.com":"/no/such/key"}' },
    "OFFSTAGE_SSH_KEYS.git.example.com: /no/such/key can't",
  ],
  [{ OFFSTAGE_SSH_KEYS: `{"git.example.com":"${import.meta.filename}"}` }, "holds no private key"],
  [{ OFFSTAGE_SSH_KNOWN_HOSTS: "/no/such/file" }, "OFFSTAGE_SSH_KNOWN_HOSTS: /no/such/file can't be read"],
  [{ OFFSTAGE_COMMIT_COMMITTER: "nobody" }, "OFFSTAGE_COMMIT_COMMITTER: must be written Name <address@host>"],
])("%j is refused", (variables, sentence) => {
  expect(() => readConfig(variables)).toThrow(sentence);
});

test("what is no place in NO_PROXY is left out, since other programs' entries stand there too", () => {
  const { proxies } = readConfig({
    NO_PROXY: "localhost, /var/run/docker.sock ,10.0.0.0/33,10.0.0.0/8,http://x",
  }).outbound;
  expect(proxies.direct).toEqual(["localhost", "10.0.0.0/8"]);
});
