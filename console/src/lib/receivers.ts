/** Receivers of webhooks, one per language: each checks the signature before it reads the body. */
export const receivers: readonly { language: string; title: string; text: string }[] = [
  {
    language: 'typescript',
    title: 'TypeScript',
    text: `import { createServer } from 'node:http'
import { verifyWebhook } from '@portolan/client'

createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks).toString()
  try {
    const notification = await verifyWebhook({
      secret: process.env.WEBHOOK_SECRET,
      headers: request.headers,
      body,
    })
    console.log(notification.webhook_history_id, notification.data)
    response.writeHead(204).end()
  } catch {
    response.writeHead(401).end()
  }
}).listen(3000)
`,
  },
  {
    language: 'python',
    title: 'Python',
    text: `import os
from flask import Flask, request
from standardwebhooks import Webhook, WebhookVerificationError

app = Flask(__name__)
webhook = Webhook(os.environ["WEBHOOK_SECRET"])

@app.post("/")
def receive():
    try:
        notification = webhook.verify(request.get_data(), dict(request.headers))
    except WebhookVerificationError:
        return "", 401
    print(notification["webhook_history_id"], notification["data"])
    return "", 204
`,
  },
  {
    language: 'go',
    title: 'Go',
    text: `package main

import (
	"io"
	"log"
	"net/http"
	"os"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	webhook, err := standardwebhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || webhook.Verify(body, r.Header) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		log.Printf("%s", body)
		w.WriteHeader(http.StatusNoContent)
	})
	log.Fatal(http.ListenAndServe(":3000", nil))
}
`,
  },
  {
    language: 'php',
    title: 'PHP',
    text: `<?php
$body = file_get_contents('php://input');
$id = $_SERVER['HTTP_WEBHOOK_ID'] ?? '';
$time = $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
$key = base64_decode(substr(getenv('WEBHOOK_SECRET'), strlen('whsec_')));
$expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$time.$body", $key, true));
$given = explode(' ', $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '');
$genuine = array_filter($given, fn ($one) => hash_equals($expected, $one));
if (abs(time() - (int) $time) > 300 || !$genuine) {
    http_response_code(401);
    exit;
}
$notification = json_decode($body, true);
error_log($notification['webhook_history_id']);
http_response_code(204);
`,
  },
]
