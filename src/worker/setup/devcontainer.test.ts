import { expect, test } from "vitest";
import { devcontainerPathsOf, isForChoice, readDevcontainer } from "./devcontainer.ts";

const read = (file: object) => readDevcontainer(JSON.stringify(file), "/workspace/app");

test("commands get the file's own variables, and keep those of the shell", () => {
  const { script } = read({
    onCreateCommand: "cd ${containerWorkspaceFolder}/api && echo ${HOME} $HOME",
    updateContentCommand: ["sh", "${localWorkspaceFolder}/it's.sh", "${localWorkspaceFolderBasename}"],
    postCreateCommand: { a: "echo ${containerWorkspaceFolderBasename}", b: ["echo", "${unknown}"] },
  });
  expect(script?.split("\n")).toEqual([
    "(cd /workspace/app/api && echo ${HOME} $HOME",
    ")",
    "'sh' '/workspace/app/it'\\''s.sh' 'app'",
    "(echo app",
    ")",
    "'echo' '${unknown}'",
    "",
  ]);
});

test("a variable is left out if its value is not known here", () => {
  const { variables } = read({
    containerEnv: { WHERE: "${containerWorkspaceFolder}/x", HOSTS: "${localEnv:HOME}", NONE: null },
  });
  expect(variables).toEqual({ WHERE: "/workspace/app/x" });
});

test("properties that would install something and are not followed are reported", () => {
  expect(read({ image: "debian", postCreateCommand: "make", customizations: {} }).ignored).toEqual([]);
  const { ignored } = read({ features: { x: {} }, build: { dockerfile: "Dockerfile" }, dockerComposeFile: "a.yml" });
  expect(ignored).toEqual(["build", "dockerComposeFile", "features"]);
});

test("a file in a subfolder is for repositories that have no other", () => {
  const python = ".devcontainer/python/devcontainer.json";
  const rust = ".devcontainer/rust/devcontainer.json";
  const others = [".devcontainer/Dockerfile", ".devcontainer/python/a/devcontainer.json", ""];
  expect(devcontainerPathsOf(others)).toEqual([]);
  expect(devcontainerPathsOf([python, ...others])).toEqual([python]);
  expect(isForChoice([python])).toBe(false);
  expect(isForChoice(devcontainerPathsOf([python, rust]))).toBe(true);
  const usual = [".devcontainer/devcontainer.json", ".devcontainer.json"];
  expect(devcontainerPathsOf([...usual.toReversed(), python, rust])).toEqual(usual);
  expect(isForChoice(usual)).toBe(false);
});
