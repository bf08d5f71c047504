/**
 * Changes a versioned resource: sends what the operator changed, for the version that was shown. When somebody else was faster,
 * it shows both versions, and the operator may apply the change to the new one.
 */
import { type ReactNode, useState } from 'react';
import { ApiError } from '../api/client';
import { Action } from './action';
import type { CommandWords } from './command';
import { Conflict } from './conflict';
import { bodyOfValues, changedValues, type Field, Fields, type Values } from './fields';

interface Version {
  readonly values: Values;
  readonly etag: string;
}

interface EditProps extends Version {
  readonly label?: string;
  readonly consequence: ReactNode;
  readonly fields: readonly Field[];
  readonly reload: () => Promise<Version>;
  readonly save: (changes: { readonly [name: string]: string | number }, etag: string) => Promise<unknown>;
  /** For what was changed. */
  readonly command?: (changes: Values) => CommandWords;
}

export function Edit({
  label = 'Edit',
  consequence,
  fields,
  values,
  etag,
  reload,
  save,
  command,
}: EditProps) {
  // What the page shows may change while the dialogue is open.
  const [before, setBefore] = useState<Version>({ values, etag });
  const [current, setCurrent] = useState<Version>();
  const [yours, setYours] = useState(values);
  const changes = changedValues(before.values, yours);
  return (
    <Action
      label={label}
      {...(command === undefined ? {} : { command: command(changes) })}
      onOpen={() => {
        setBefore({ values, etag });
        setYours(values);
        setCurrent(undefined);
      }}
      confirm={{
        submit: current === undefined ? 'Save' : 'Apply mine to the new version',
        consequence,
        fields: (
          <>
            {current && (
              <Conflict fields={fields} before={before.values} current={current.values} yours={yours} />
            )}
            <Fields fields={fields} values={yours} onChange={setYours} />
          </>
        ),
      }}
      run={async () => {
        try {
          await save(bodyOfValues(fields, changes), (current ?? before).etag);
        } catch (error) {
          if (error instanceof ApiError && error.status === 412) setCurrent(await reload());
          throw error;
        }
      }}
    />
  );
}
