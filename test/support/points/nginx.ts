/** nginx with `auth_request`. */
import { nginx } from '../proxies/nginx.ts';
import { forwardAuthPoint } from './forward-auth.ts';

export const NGINX = forwardAuthPoint({ name: 'nginx', protocols: ['HTTP/1.1', 'HTTP/2'], kind: nginx });
