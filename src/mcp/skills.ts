import { join } from "node:path";
import { SkillsExtension, type SkillCatalog } from "@modelcontextprotocol/server/ext/skills";
import { nodeSkillFiles } from "@modelcontextprotocol/server/ext/skills/node";

/**
 * Reads the skills of the package's documentation, which explain to an agent how to hand work over
 * (https://agentskills.io).
 */
export function loadSkills(): Promise<SkillCatalog> {
  return SkillsExtension.load(nodeSkillFiles(join(import.meta.dirname, "../../docs/skills")), { strict: true });
}
