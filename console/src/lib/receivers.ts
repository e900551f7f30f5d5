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
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("WEBHOOK_SECRET"), "whsec_"))
	if err != nil || len(key) == 0 {
		log.Fatal("WEBHOOK_SECRET is not a signing secret")
	}
	genuine := func(header http.Header, body []byte) bool {
		seconds, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
		if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
			return false
		}
		mac := hmac.New(sha256.New, key)
		io.WriteString(mac, header.Get("webhook-id")+"."+header.Get("webhook-timestamp")+".")
		mac.Write(body)
		expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		for _, given := range strings.Fields(header.Get("webhook-signature")) {
			if hmac.Equal([]byte(given), []byte(expected)) {
				return true
			}
		}
		return false
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || !genuine(r.Header, body) {
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
