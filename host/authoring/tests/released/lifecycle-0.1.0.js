// What every policy has. `settings` is what `configure` made of data.config; nothing else is kept between calls.

/** @typedef {{path: string, message: string}} ConfigIssue */

/** @returns {{value: number, issues: ConfigIssue[]}} */
export function readNumber(config, key, fallback, least, most) {
  let read;
  try {
    read = config.trim() === "" ? {} : JSON.parse(config);
  } catch (error) {
    return { value: fallback, issues: [{ path: "", message: `is no JSON: ${error.message}` }] };
  }
  const value = read[key] ?? fallback;
  if (typeof value !== "number" || !(value >= least && value <= most)) {
    return { value: fallback, issues: [{ path: `/${key}`, message: `must be a number from ${least} to ${most}` }] };
  }
  return { value, issues: [] };
}

/** The interface `lifecycle` of a policy with one numeric setting; a list of issues is thrown as its error. */
export function lifecycleOf({ name, summary, key, fallback, least, most, set }) {
  const read = (config) => {
    const { value, issues } = readNumber(config, key, fallback, least, most);
    if (issues.length > 0) {
      throw issues;
    }
    return value;
  };
  return {
    describe: () => ({ name, version: "0.1.0", summary, configSchema: "", deterministic: true }),
    validate: (config) => {
      read(config);
      return [];
    },
    configure: (config) => set(read(config)),
  };
}
