import { expect, it } from "vitest";
import { isAddressProblem, parseRepositoryUrl } from "../domain/repositories/repository.ts";
import { repositoryKey } from "./repository-key.ts";

const forges = [
  { webUrl: "https://code.example:3000", ignoresCase: true },
  { webUrl: "https://plain.example", ignoresCase: false },
];

function keyOf(url: string): string {
  const address = parseRepositoryUrl(url);
  if (isAddressProblem(address)) throw new Error(address.problem);
  return repositoryKey(forges, address);
}

it.each<[string, string[]]>([
  [
    "github.com/acme/app",
    [
      "https://github.com/acme/app",
      "https://GitHub.com/ACME/App.git",
      "https://www.github.com/Acme/app/",
      "http://github.com:80/acme/%41pp",
      "git@github.com:Acme/APP.git",
      "ssh://git@ssh.github.com:443/acme/App",
    ],
  ],
  [
    "gitlab.com/group/below/app",
    ["https://gitlab.com/Group/Below/App", "ssh://git@altssh.gitlab.com:443/group/below/app"],
  ],
  ["bitbucket.org/acme/app", ["https://bitbucket.org/Acme/App", "git@bitbucket.org:acme/app"]],
  ["codeberg.org/acme/app", ["https://codeberg.org/ACME/app"]],
  ["code.example:3000/acme/app", ["https://code.example:3000/Acme/App", "ssh://git@code.example:2222/acme/APP"]],
])("%s is one repository, however it is written", (key, urls) => {
  for (const url of urls) expect(keyOf(url)).toBe(key);
});

it("capitals count in the paths of hosts of which nothing is known, and in those of files", () => {
  expect(keyOf("https://git.example/Acme/App")).toBe("git.example/Acme/App");
  expect(keyOf("https://plain.example/Acme/App")).toBe("plain.example/Acme/App");
  expect(keyOf("/srv/Acme/App")).toBe("file:/srv/Acme/App");
  expect(keyOf("https://github.com.example/Acme/App")).toBe("github.com.example/Acme/App");
  expect(keyOf("https://github.com:8443/Acme/App")).toBe("github.com:8443/Acme/App");
});
