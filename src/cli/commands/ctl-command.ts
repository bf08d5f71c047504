/** `proofgate ctl`: operator commands that use Control's API. */
import { group } from '../define-command.ts';
import { ctlDecisionCommands, ctlSecretCommands } from './ctl/ctl-actions.ts';
import { ctlApplyCommand } from './ctl/ctl-apply.ts';
import { ctlCallerCommands } from './ctl/ctl-block-caller.ts';
import { ctlBrokerKeysCommands } from './ctl/ctl-broker-keys.ts';
import { ctlGetCommand } from './ctl/ctl-get.ts';
import { ctlLoginCommand, ctlLogoutCommand } from './ctl/ctl-login.ts';
import { ctlSigningKeysCommand } from './ctl/ctl-signing-keys.ts';

export const ctlCommands = group(
  'ctl',
  'Operate Control: sign in, apply a site file, approve or deny enrollments, revoke keys, show state',
  [
    ctlLoginCommand,
    ctlLogoutCommand,
    ctlApplyCommand,
    ctlGetCommand,
    ...ctlDecisionCommands,
    ...ctlCallerCommands,
    ctlBrokerKeysCommands,
    ctlSigningKeysCommand,
    ...ctlSecretCommands,
  ],
);
