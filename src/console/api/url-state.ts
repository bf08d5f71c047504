/** Keeps the filters, sorting and page number of a list in the URL. */
import { useNavigate, useSearch } from '@tanstack/react-router';

export interface UrlState {
  readonly values: { readonly [name: string]: string | undefined };
  /** Undefined removes a value. Changing a filter returns to the first page. */
  set(changes: { readonly [name: string]: string | undefined }): void;
}

export function useUrlState(): UrlState {
  const values: { readonly [name: string]: string | undefined } = useSearch({ strict: false });
  const navigate = useNavigate();
  return {
    values,
    set(changes) {
      const paging = 'cursor' in changes ? {} : { cursor: undefined };
      void navigate({
        to: '.',
        search: { ...values, ...paging, ...changes },
        replace: !('cursor' in changes),
      });
    },
  };
}

export function parseSearch(text: string): { [name: string]: string } {
  return Object.fromEntries(new URLSearchParams(text));
}

export function stringifySearch(values: { readonly [name: string]: unknown }): string {
  const present = Object.entries(values).filter(([, value]) => typeof value === 'string' && value !== '');
  const text = new URLSearchParams(present.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
}
