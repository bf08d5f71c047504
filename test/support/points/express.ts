/** The middleware in Express 5. */
import { middlewarePoint } from './middleware.ts';

export const EXPRESS = middlewarePoint('express', 'express');
