#!/usr/bin/env node
// The first file of the packed program. It asks for the version of Node before anything else is read, in a form that every Node
// of the last years reads: an older one would end with a stack out of a dependency.
"use strict";
var fs = require("fs");
var path = require("path");

var wanted = require("../package.json").engines.node.replace(/[^0-9.]/g, "");

/** Whether a version `a.b.c` is at least another, number by number. */
function isAtLeast(version, least) {
  var numbers = version.split(".").map(Number);
  var leastNumbers = least.split(".").map(Number);
  for (var index = 0; index < leastNumbers.length; index += 1) {
    var difference = (numbers[index] || 0) - leastNumbers[index];
    if (difference !== 0) return difference > 0;
  }
  return true;
}

if (isAtLeast(process.versions.node, wanted)) {
  // Built, or the source itself, which such a Node runs too.
  var built = path.join(__dirname, "../dist/main.js");
  void import(fs.existsSync(built) ? "../dist/main.js" : "../src/main.ts");
} else {
  process.stderr.write(
    "offstage: Node " +
      process.versions.node +
      " is too old: install Node " +
      wanted +
      " or newer, https://nodejs.org/\n",
  );
  process.exitCode = 2;
}
