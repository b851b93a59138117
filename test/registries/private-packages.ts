import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { testEnvironment } from "../test-environment.ts";
import { zip } from "./archive.ts";

/** A server of packages that answers only requests with its password. */
export interface PrivatePackages {
  readonly url: string;
  /** Paths that were asked for, with the status of the answer, oldest first. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

/** Content of a file by path; a path with "?" counts with its query. */
export type Served = ReadonlyMap<string, Buffer | string>;

/** @param served what it has, under the address that its clients know it by */
export async function servePackages(served: Served, authorization: string): Promise<PrivatePackages> {
  const asked: string[] = [];
  const server = createServer((incoming, response) => {
    const { url = "", headers } = incoming;
    const found = served.get(url);
    const status = headers.authorization !== authorization ? 401 : found === undefined ? 404 : 200;
    asked.push(`${status} ${url}`);
    incoming.resume();
    if (status !== 200) return response.writeHead(status, { "www-authenticate": "Basic" }).end();
    return response.writeHead(200, { "accept-ranges": "none" }).end(found);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A module of one function, by the protocol of module proxies (https://go.dev/ref/mod#goproxy-protocol). */
export function goModule(path: string, version: string, word: string): Served {
  const mod = `module ${path}\n\ngo 1.18\n`;
  const source = `package members\n\n// Word is what only members know.\nconst Word = "${word}"\n`;
  const info = JSON.stringify({ Version: version, Time: "2024-01-01T00:00:00Z" });
  const at = `/${path}/@v`;
  return new Map<string, Buffer | string>([
    [`${at}/list`, `${version}\n`],
    [`/${path}/@latest`, info],
    [`${at}/${version}.info`, info],
    [`${at}/${version}.mod`, mod],
    [
      `${at}/${version}.zip`,
      zip([
        [`${path}@${version}/go.mod`, mod],
        [`${path}@${version}/members.go`, source],
      ]),
    ],
  ]);
}

/**
 * A gem that `gem build` built, with the compact index that Bundler reads and RubyGems' own
 * (https://guides.rubygems.org/rubygems-org-compact-index-api).
 */
export async function rubyGem(name: string, version: string, word: string): Promise<Served> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-gem-"));
  try {
    const file = name.replaceAll("-", "_");
    await writeFile(join(folder, `${file}.rb`), `module Members\n  WORD = "${word}"\nend\n`);
    await writeFile(
      join(folder, "it.gemspec"),
      `Gem::Specification.new { |s| s.name = "${name}"; s.version = "${version}"; s.summary = "x"; s.authors = ["x"]; s.files = ["${file}.rb"]; s.require_paths = ["."] }`,
    );
    const run = (command: string, ...words: string[]) =>
      promisify(execFile)(command, words, { cwd: folder, env: { ...testEnvironment(), HOME: folder } });
    await run("gem", "build", "it.gemspec", "--output", "it.gem");
    const quick = 'require "zlib"; s = Gem::Specification.load("it.gemspec"); s.abbreviate; s.sanitize';
    await run("ruby", "-rrubygems", "-e", `${quick}; File.binwrite("it.rz", Zlib.deflate(Marshal.dump(s)))`);
    const gem = await readFile(join(folder, "it.gem"));
    const info = `---\n${version} |checksum:${createHash("sha256").update(gem).digest("hex")}\n`;
    const md5 = createHash("md5").update(info).digest("hex");
    return new Map<string, Buffer | string>([
      ["/", "gems"],
      ["/versions", `created_at: 2024-01-01T00:00:00Z\n---\n${name} ${version} ${md5}\n`],
      ["/names", `---\n${name}\n`],
      [`/info/${name}`, info],
      [`/gems/${name}-${version}.gem`, gem],
      [`/quick/Marshal.4.8/${name}-${version}.gemspec.rz`, await readFile(join(folder, "it.rz"))],
    ]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * A package of a text file, by NuGet's protocol (https://learn.microsoft.com/nuget/api/overview).
 * @param base address that its index names, with a slash at the end
 */
export function nugetPackage(base: string, id: string, version: string, word: string): Served {
  const lower = id.toLowerCase();
  const at = `/flat/${lower}`;
  const leaf = `${base}registration/${lower}/${version}.json`;
  const item = {
    "@id": leaf,
    packageContent: `${base}flat/${lower}/${version}/${lower}.${version}.nupkg`,
    catalogEntry: { "@id": leaf, id, version, listed: true, dependencyGroups: [] },
  };
  const page = { "@id": `${base}registration/${lower}/index.json`, count: 1, lower: version, upper: version };
  const nuspec = `<?xml version="1.0"?><package xmlns="http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd"><metadata><id>${id}</id><version>${version}</version><authors>x</authors><description>x</description></metadata></package>`;
  const types =
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="nuspec" ContentType="application/octet-stream"/><Default Extension="txt" ContentType="text/plain"/></Types>';
  return new Map<string, Buffer | string>([
    [
      "/index.json",
      JSON.stringify({
        version: "3.0.0",
        resources: [
          { "@id": `${base}flat/`, "@type": "PackageBaseAddress/3.0.0" },
          ...["", "/3.4.0", "/3.6.0"].map((form) => ({
            "@id": `${base}registration/`,
            "@type": `RegistrationsBaseUrl${form}`,
          })),
        ],
      }),
    ],
    [`${at}/index.json`, JSON.stringify({ versions: [version] })],
    [`${at}/${version}/${lower}.nuspec`, nuspec],
    [
      `${at}/${version}/${lower}.${version}.nupkg`,
      zip([
        [`${id}.nuspec`, nuspec],
        ["content/word.txt", word],
        ["[Content_Types].xml", types],
      ]),
    ],
    [`/registration/${lower}/index.json`, JSON.stringify({ count: 1, items: [{ ...page, items: [item] }] })],
    [`/registration/${lower}/${version}.json`, JSON.stringify({ ...item, listed: true })],
  ]);
}
