/** `proofgate ctl`: operator commands that use Control's API. */
import { group } from '../define/define-command.ts';
import { ctlDecisionCommands } from './ctl/ctl-actions.ts';
import { ctlApplyCommand } from './ctl/ctl-apply.ts';
import { ctlCallerCommands } from './ctl/ctl-block-caller.ts';
import { ctlBrokerKeysCommands } from './ctl/ctl-broker-keys.ts';
import { ctlCreateCommands } from './ctl/ctl-create.ts';
import { ctlDeleteCommands } from './ctl/ctl-delete.ts';
import { ctlGetCommand } from './ctl/ctl-get.ts';
import { ctlLoginCommand, ctlLogoutCommand, ctlWhoamiCommand } from './ctl/ctl-login.ts';
import { ctlPolicyCommands } from './ctl/ctl-policies.ts';
import { ctlPreviewCommand } from './ctl/ctl-preview.ts';
import { ctlSecretCommands } from './ctl/ctl-secrets.ts';
import { ctlSigningKeysCommand } from './ctl/ctl-signing-keys.ts';
import { ctlSourceCommands } from './ctl/ctl-sources.ts';

export const ctlCommands = group(
  'ctl',
  'Operate Control: sign in, apply a site file, approve or deny enrollments, revoke keys, show state',
  [
    ctlLoginCommand,
    ctlLogoutCommand,
    ctlWhoamiCommand,
    ctlApplyCommand,
    ctlPreviewCommand,
    ctlGetCommand,
    ctlCreateCommands,
    ...ctlDeleteCommands,
    ...ctlDecisionCommands,
    ...ctlSourceCommands,
    ...ctlPolicyCommands,
    ...ctlCallerCommands,
    ctlBrokerKeysCommands,
    ctlSigningKeysCommand,
    ...ctlSecretCommands,
  ],
);
