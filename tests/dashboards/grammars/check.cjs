// Reads queries as JSON, [{"language": "promql", "text": "..."}], and prints for each the places at
// which its grammar finds an error. The argument is the directory of the installed grammars.
const { readFileSync } = require("node:fs");
const { createRequire } = require("node:module");

const installed = createRequire(`${process.argv[2]}/`);
const parsers = {
  promql: installed("@prometheus-io/lezer-promql").parser,
  traceql: installed("@grafana/lezer-traceql").parser,
};

function errors({ language, text }) {
  const places = [];
  parsers[language].parse(text).iterate({
    enter: (node) => {
      if (node.type.isError) places.push(node.from);
    },
  });
  return places;
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(errors)));
