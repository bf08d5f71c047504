/** "As site file": the member that declares the same, for `proofgate ctl apply`, which creates what a site consists of. */
import { Button, Collapse, Stack } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { controlUrl } from '../api/client';
import { ctlCommand } from '../api/ctl-command';
import { visibleJson } from '../api/visible';
import { CopyText } from './command';

interface SiteFileProps {
  /** Such as `clients`. */
  readonly member: string;
  readonly value: unknown;
  readonly flags?: readonly string[];
}

export function AsSiteFile({ member, value, flags = [] }: SiteFileProps) {
  const [shown, { toggle }] = useDisclosure(false);
  // YAML 1.2 is a superset of JSON, so that nothing needs another way of quoting.
  const text = [
    '# add to the site file',
    `${member}:`,
    `  - ${visibleJson(value)}`,
    '# then run',
    `# ${ctlCommand(controlUrl, ['apply', '-f', 'site.yaml', ...flags]) ?? ''}`,
  ];
  return (
    <Stack gap={4} align="flex-start">
      <Button variant="subtle" size="compact-sm" color="gray" onClick={toggle} aria-expanded={shown}>
        As site file
      </Button>
      <Collapse expanded={shown} w="100%">
        <CopyText text={text.join('\n')} />
      </Collapse>
    </Stack>
  );
}
