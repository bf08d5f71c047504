/** `proofgate bundle diff`: shows the changes from one bundle to another. */
import type { Difference, MemberDifference } from '../../../bundle/authoring/content-diff.ts';
import { CliError } from '../../../process/program/errors.ts';
import type { JsonMembers, Output } from '../../../process/program/output.ts';
import { visibleText } from '../../../process/program/visible-text.ts';
import type { SettingValues } from '../../../process/settings/settings.ts';
import { readTrustedSigners, TRUSTED_SIGNERS } from '../../bundle/bundle-flags.ts';
import { type CliContext, command } from '../../define/define-command.ts';

/** Exit codes as of diff(1): 0 for no differences, 1 for differences, 2 for an error. */
const EXIT_DIFFERENT = 1;

export const bundleDiffCommand = command({
  name: 'diff',
  summary: 'Show what changes from one bundle to another',
  positionals: {
    old: 'bundle in YAML, directory with a signed one, or state directory',
    new: 'the same',
  },
  settings: TRUSTED_SIGNERS,
  examples: [
    'proofgate bundle diff bundle bundle.yaml',
    'proofgate bundle diff /var/lib/proofgate bundle --bundle-key signer.jwk.json --output json',
  ],
  run: async ({ settings, positionals }, context) => {
    try {
      await diff(positionals, settings, context);
    } catch (error) {
      const { fromLibraryError } = await import('../../errors/library-errors.ts');
      const { code, message } = fromLibraryError(error);
      throw new CliError('usage', code, message);
    }
  },
});

async function diff(
  sources: { readonly old: string; readonly new: string },
  settings: SettingValues<typeof TRUSTED_SIGNERS>,
  { output }: CliContext,
): Promise<void> {
  const { diffContents } = await import('../../../bundle/authoring/content-diff.ts');
  const { readDiffSource } = await import('../../bundle/bundle-sources.ts');
  const signers = await readTrustedSigners(settings);
  const before = await readDiffSource(sources.old, signers);
  const after = await readDiffSource(sources.new, signers);
  const comparesExpiry = before.saysExpiry && after.saysExpiry;
  const differences = diffContents(before.content, after.content, { comparesExpiry });
  output.result(differences.flatMap(linesOf), {
    old: sideMembers(before),
    new: sideMembers(after),
    differences: differences.map(membersOf),
  });
  noteUnchecked([before, after], output);
  if (differences.length > 0) output.endWith(EXIT_DIFFERENT);
}

interface Side {
  readonly position: { readonly revision: number; readonly head: string } | undefined;
  readonly signatures: 'none' | 'valid' | 'not_checked';
}

function noteUnchecked(sides: readonly Side[], output: Output): void {
  if (sides.some(({ signatures }) => signatures === 'not_checked')) {
    output.note('signatures_not_checked', 'signatures were not checked: --bundle-key names who may sign');
  }
}

function sideMembers({ position, signatures }: Side): JsonMembers {
  return { revision: position?.revision ?? null, head: position?.head ?? null, signatures };
}

const SIGNS: { readonly [C in Difference['change']]: string } = { added: '+', removed: '-', changed: '~' };

/** One line for the entry, and one for each changed member. */
function linesOf(difference: Difference): readonly string[] {
  const { change, kind, members, name } = difference;
  const head = `${SIGNS[change]} ${kind} ${name.join(' ')}`;
  if (change === 'changed') return [head, ...members.map(changedLine)].map(visibleText);
  const values = members.map(({ member, before, after }) => `${member} ${after ?? before}`);
  return [visibleText(values.length === 0 ? head : `${head}: ${values.join(', ')}`)];
}

function changedLine({ member, before, after }: MemberDifference): string {
  return `    ${member}: ${before ?? 'absent'} -> ${after ?? 'absent'}`;
}

function membersOf({ change, kind, name, members }: Difference): JsonMembers {
  return { change, kind, name, members: members.map(jsonOf) };
}

function jsonOf({ member, before, after }: MemberDifference): JsonMembers {
  return { member, before: parsed(before), after: parsed(after) };
}

/** Safe to parse: this module produced the JSON texts. */
function parsed(text: string | null): unknown {
  return text === null ? null : JSON.parse(text);
}
