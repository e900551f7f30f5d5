// The database. Without `url` everything below `embedded` applies and the service runs its own server; with it, `embedded`
// is ignored. Sizes of pools are per process: the sum over processes must fit `max_connections` of the server.

import Type from 'typebox'
import { secretUrl } from '../keys.ts'

/** PostgreSQL: a server of yours, or one that Portolan runs itself. */
export const databaseSection = Type.Object(
  {
    url: Type.Optional(
      secretUrl(['postgres', 'postgresql'], {
        description: 'PostgreSQL 15 or later. All processes of an installation share one database.',
        unset: 'Portolan runs its own PostgreSQL below `data_dir`',
        example: 'postgres://portolan@db.example.org:5432/portolan',
        mask: 'password',
      }),
    ),
    direct_url: Type.Optional(
      secretUrl(['postgres', 'postgresql'], {
        description:
          'The server itself, where `database.url` leads to a pooler in transaction mode such as PgBouncer. Notifications and migrations, which need a session of their own, use it.',
        unset: '`database.url` leads to the server itself',
        example: 'postgres://portolan@db.example.org:5432/portolan',
        mask: 'password',
      }),
    ),
    replica_urls: Type.Array(
      secretUrl(['postgres', 'postgresql'], {
        description: 'Address of a streaming replica.',
        example: 'postgres://portolan@replica.example.org:5432/portolan',
        mask: 'password',
      }),
      {
        description:
          'Streaming replicas of the database, for lists that may be a second old. What an organization has written itself is always in its lists.',
        default: [],
        maxItems: 16,
      },
    ),
    pool_size: Type.Integer({
      description: 'Connections that one process opens at most for requests and webhooks.',
      default: 10,
      minimum: 1,
      maximum: 1000,
    }),
    worker_pool_size: Type.Integer({
      description:
        'Further connections for trackers and senders, so that requests which wait for a connection never delay a block.',
      default: 10,
      minimum: 2,
      maximum: 1000,
    }),
    statement_timeout_seconds: Type.Integer({
      description: 'Time after which a statement of a request is cancelled; 0 means never.',
      default: 30,
      minimum: 0,
      maximum: 3600,
    }),
    embedded: Type.Object(
      {
        binaries: Type.Optional(
          Type.String({
            description: 'Folder that holds `postgres` and `initdb`.',
            unset: 'the PostgreSQL of the system if it is 15 or later, else the one in the package',
            example: '/usr/lib/postgresql/18/bin',
            minLength: 1,
            path: true,
          }),
        ),
        settings: Type.Record(
          Type.String({ pattern: '^[a-z][a-z0-9_.]*$' }),
          Type.Union([Type.String(), Type.Number(), Type.Boolean()], {
            description: 'Value of that PostgreSQL setting.',
          }),
          {
            description: 'Settings for the embedded PostgreSQL, as in postgresql.conf.',
            default: {},
            example: { shared_buffers: '256MB' },
            entry: 'setting',
          },
        ),
        backup: Type.Object(
          {
            directory: Type.Optional(
              Type.String({
                description:
                  'Folder of base backups (`portolan backup`) and of the archived WAL, on another disk than the data. A change takes effect at the next start of the database.',
                unset: 'WAL is not archived, and `portolan backup` needs a folder',
                example: '/var/backups/portolan',
                minLength: 1,
                path: true,
              }),
            ),
            archive_command: Type.Optional(
              Type.String({
                description:
                  'Shell command that stores one WAL segment elsewhere, such as in a bucket, as PostgreSQL runs it: `%p` is the file, `%f` its name. It must not overwrite another segment, and must fail where it did not store.',
                unset: 'segments are copied to `wal` in the directory',
                example: 'aws s3 cp %p s3://backups/portolan/wal/%f',
                minLength: 1,
              }),
            ),
            restore_command: Type.Optional(
              Type.String({
                description:
                  'Shell command that fetches a segment again: `%f` is its name, `%p` where it goes.',
                unset: 'segments are copied from `wal` in the directory',
                example: 'aws s3 cp s3://backups/portolan/wal/%f %p',
                minLength: 1,
              }),
            ),
            archive_timeout_seconds: Type.Integer({
              description:
                'Time after which a segment is archived although it is not full: what a lost disk costs at most.',
              default: 60,
              minimum: 1,
              maximum: 86_400,
            }),
          },
          { description: 'Backups of the embedded PostgreSQL, and the archive of its WAL.' },
        ),
      },
      { description: 'The PostgreSQL that Portolan runs itself when `database.url` is not set.' },
    ),
  },
  { description: 'PostgreSQL: a server of yours, or one that Portolan runs itself.' },
)
