/** The fields of a form, declared once for creating and editing. Control checks the values, and names the faulty ones. */
import { Autocomplete, NativeSelect, TextInput } from '@mantine/core';
import { createContext, useContext } from 'react';
import { ApiError } from '../api/client';
import { visible } from '../api/visible';

export interface Field {
  /** The member's name in the API. */
  readonly name: string;
  readonly label: string;
  readonly description?: string;
  readonly placeholder?: string;
  /** Allowed values. */
  readonly options?: readonly { readonly value: string; readonly label: string }[];
  /** Suggested values; others may be typed. */
  readonly suggestions?: readonly string[];
  /** What is wrong with a value, of which Control would reject most; undefined if nothing is. */
  readonly faultOf?: (value: string) => string | undefined;
  readonly isOptional?: boolean;
  /** Whether the value is sent as a number. */
  readonly isNumber?: boolean;
}

/** Values by field name; an empty one is omitted. */
export interface Values {
  readonly [name: string]: string;
}

interface FieldsProps {
  readonly fields: readonly Field[];
  readonly values: Values;
  readonly onChange: (values: Values) => void;
}

/** The error of the last attempt to save the form. */
export const FormError = createContext<unknown>(undefined);

/** @returns what Control says is wrong with a member; undefined if nothing is */
export function useFaults(): (name: string) => string | undefined {
  const error = useContext(FormError);
  const faults = error instanceof ApiError ? error.faults : [];
  return (name) => {
    const fault = faults.find(({ pointer }) => pointer.split('/').includes(name));
    return fault && visible(fault.reason);
  };
}

export function Fields({ fields, values, onChange }: FieldsProps) {
  const faultAt = useFaults();
  return fields.map(
    ({ name, label, description, placeholder, options, suggestions, faultOf, isOptional, isNumber }) => {
      const set = (value: string) => onChange({ ...values, [name]: value });
      const common = {
        label,
        description,
        value: values[name] ?? '',
        error: faultOf?.(values[name] ?? '') ?? faultAt(name),
        required: isOptional !== true,
      };
      if (options !== undefined) {
        return (
          <NativeSelect
            key={name}
            {...common}
            data={[...options]}
            onChange={({ currentTarget }) => set(currentTarget.value)}
          />
        );
      }
      if (suggestions !== undefined) {
        return (
          <Autocomplete
            key={name}
            {...common}
            placeholder={placeholder}
            data={[...suggestions]}
            onChange={set}
          />
        );
      }
      return (
        <TextInput
          key={name}
          {...common}
          placeholder={placeholder}
          autoComplete="off"
          {...(isNumber === true ? { inputMode: 'numeric' } : {})}
          onChange={({ currentTarget }) => set(currentTarget.value)}
        />
      );
    },
  );
}

/**
 * The body of a request, without empty values. A value that is not a number is sent unchanged, so that Control reports
 * it.
 */
export function bodyOfValues(
  fields: readonly Field[],
  values: Partial<Values>,
): { [name: string]: string | number } {
  const given = fields.filter(({ name }) => (values[name] ?? '') !== '');
  return Object.fromEntries(
    given.map(({ name, isNumber }) => {
      const text = values[name] ?? '';
      return [name, isNumber === true && /^\d{1,15}$/.test(text) ? Number(text) : text];
    }),
  );
}
