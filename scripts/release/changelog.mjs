/** Reads CHANGELOG.md, in the format of Keep a Changelog 1.1.0. */
import { Failure } from '../failure.mjs';

/** @returns the entry of a version @throws Failure when the entry, its date or its content is missing */
export function entryOf(changelog, version) {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((each) => each.startsWith(`[${version}]`));
  if (section === undefined) {
    throw new Failure(
      'changelog_entry_missing',
      `CHANGELOG.md has no section "## [${version}] - YYYY-MM-DD"`,
    );
  }
  const [heading = '', ...lines] = section.split('\n');
  if (!/^\[[^\]]+\] - \d{4}-\d\d-\d\d$/.test(heading)) {
    throw new Failure(
      'changelog_entry_missing',
      `in CHANGELOG.md the section of ${version} has no day: "## [${version}] - YYYY-MM-DD"`,
    );
  }
  if (!lines.some((line) => /^- \S/.test(line))) {
    throw new Failure('changelog_entry_missing', `in CHANGELOG.md the section of ${version} says nothing`);
  }
  return lines.join('\n').trim();
}
