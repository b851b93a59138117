import { isAddressProblem, parseRepositoryUrl } from "../../src/domain/repositories/repository.ts";
import type { Subject } from "../forge-trial.ts";
import { azureLoop } from "./azure.ts";
import { bitbucketLoop } from "./bitbucket.ts";
import { dataCenterLoop } from "./data-center.ts";
import { giteaLoop, githubLoop } from "./github.ts";
import { gitlabLoop } from "./gitlab.ts";
import type { LoopForge, LoopPlace } from "./loop-forge.ts";

const loops: Readonly<Record<Subject["settings"]["kind"], (place: LoopPlace) => LoopForge>> = {
  azure: azureLoop,
  bitbucket: bitbucketLoop,
  bitbucketDataCenter: dataCenterLoop,
  gitea: giteaLoop,
  github: githubLoop,
  gitlab: gitlabLoop,
};

/** @throws Error if the address is none of a repository */
export function createLoopForge({ settings, repositoryUrl }: Pick<Subject, "settings" | "repositoryUrl">): LoopForge {
  const address = parseRepositoryUrl(repositoryUrl);
  if (isAddressProblem(address)) throw new Error(`${repositoryUrl} ${address.problem}`);
  return loops[settings.kind]({ settings, address });
}
