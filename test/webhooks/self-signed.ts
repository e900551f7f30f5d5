/** A certificate that nobody has signed, and its key: good for nothing but to be refused. */
export const selfSigned: { key: string; cert: string } = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgxFjZcR9DwZjhyC8u
efyxtqEVkZDeGkCNCHcYd/O+AlqhRANCAAQjC8Pj1oGTbFMsr4va6oM5yylMad+/
oRGA6G52aZMDX//5rSeIxpJvYApDvlCP9Qu9PJdBr4azP1YdvGlLpoxU
-----END PRIVATE KEY-----`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBgDCCASWgAwIBAgIUcDazahFqDkXt/UMqsiq+eXy2OX8wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExNTA3MzM1M1oYDzIxMjYxMDIy
MDczMzUzWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQjC8Pj1oGTbFMsr4va6oM5yylMad+/oRGA6G52aZMDX//5rSeIxpJv
YApDvlCP9Qu9PJdBr4azP1YdvGlLpoxUo1MwUTAdBgNVHQ4EFgQUbB9/wTSn+W3Q
e8XHws5eKVpI3wcwHwYDVR0jBBgwFoAUbB9/wTSn+W3Qe8XHws5eKVpI3wcwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEAm3zfwgp5lt198pjgaZcD
1vHWi8HAPzpBwjsc7OJ1ct8CIQCoHAbIiCd3UV8P2hddPVO0VcyGwPd9mwEpqLIE
yK9YKA==
-----END CERTIFICATE-----`,
}
