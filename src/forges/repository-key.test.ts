import { expect, it } from "vitest";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../domain/repositories/repository.ts";
import { gitPathOf } from "./bitbucket-data-center/place.ts";
import { createForges } from "./forges.ts";
import { repositoryKey } from "./repository-key.ts";

const dataCenterPath = ({ path }: RepositoryAddress): string => gitPathOf(path);
const forges = [
  { webUrl: "https://code.example:3000", ignoresCase: true },
  { webUrl: "https://plain.example", ignoresCase: false },
  { webUrl: "https://center.example/git", ignoresCase: true, usualPath: dataCenterPath },
  { webUrl: "https://bitbucket.example", ignoresCase: true, usualPath: dataCenterPath },
];

function keyOf(url: string): string {
  const address = parseRepositoryUrl(url);
  if (isAddressProblem(address)) throw new Error(address.problem);
  return repositoryKey(forges, address);
}

it.each<[string, string[]]>([
  [
    "dev.azure.com/acme/my%20project/_git/app",
    [
      "https://dev.azure.com/acme/My%20Project/_git/App",
      "https://acme@dev.azure.com/acme/My Project/_git/app/",
      "https://acme.visualstudio.com/my%20project/_git/app",
      "https://acme.visualstudio.com/DefaultCollection/my%20project/_git/_full/app",
      "https://dev.azure.com/acme/my%20project/_git/_optimized/app",
      "git@ssh.dev.azure.com:v3/acme/My%20Project/app",
      "ssh://git@ssh.dev.azure.com/v3/acme/My%20Project/app",
      "acme@vs-ssh.visualstudio.com:v3/acme/My%20Project/app",
    ],
  ],
  [
    "dev.azure.com/acme/app/_git/app",
    [
      "https://dev.azure.com/acme/_git/app",
      "https://dev.azure.com/acme/App/_git/app",
      "https://acme.visualstudio.com/_git/App",
    ],
  ],
  ["dev.azure.com/app/app/_git/app", ["https://dev.azure.com/app/_git/app", "https://app.visualstudio.com/_git/app"]],
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
  [
    "bitbucket.example/scm/proj/app",
    [
      "https://bitbucket.example/scm/PROJ/app.git",
      "https://bitbucket.example/projects/PROJ/repos/App",
      "ssh://git@bitbucket.example:7999/proj/app.git",
    ],
  ],
  [
    "bitbucket.example/scm/~ada/app",
    ["https://bitbucket.example/scm/~ada/app", "https://bitbucket.example/users/ada/repos/app"],
  ],
  [
    "center.example/git/scm/proj/app",
    ["https://center.example/git/scm/PROJ/app", "https://center.example/git/projects/PROJ/repos/app"],
  ],
])("%s is one repository, however it is written", (key, urls) => {
  for (const url of urls) expect(keyOf(url)).toBe(key);
});

it("on a server of Azure DevOps the project need not be named if it has the repository's name", () => {
  const servers = createForges([
    { kind: "azure", webUrl: "https://tfs.example/tfs/main", apiUrl: "https://tfs.example/tfs", token: "x" },
  ]);
  const key = (url: string): string => {
    const address = parseRepositoryUrl(url);
    if (isAddressProblem(address)) throw new Error(address.problem);
    return servers.keyOf(address);
  };
  const long = key("https://tfs.example/tfs/Main/App/_git/App");
  expect(long).toBe("tfs.example/tfs/main/app/_git/app");
  expect(key("https://tfs.example/tfs/main/_git/app")).toBe(long);
  expect(key("ssh://git@tfs.example:22/tfs/main/_git/app")).toBe(long);
  expect(key("https://tfs.example/tfs/main/other/_git/app")).not.toBe(long);
  // Another collection is no part of the connection, and is known by nothing but its address.
  expect(key("https://tfs.example/tfs/other/_git/app")).toBe("tfs.example/tfs/other/_git/app");
});

it("capitals count in the paths of hosts of which nothing is known, and in those of files", () => {
  expect(keyOf("https://git.example/Acme/App")).toBe("git.example/Acme/App");
  expect(keyOf("https://plain.example/Acme/App")).toBe("plain.example/Acme/App");
  expect(keyOf("/srv/Acme/App")).toBe("file:/srv/Acme/App");
  expect(keyOf("https://github.com.example/Acme/App")).toBe("github.com.example/Acme/App");
  expect(keyOf("https://github.com:8443/Acme/App")).toBe("github.com:8443/Acme/App");
});
