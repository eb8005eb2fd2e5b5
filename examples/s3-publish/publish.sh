#!/bin/sh
# Runs a command, and publishes what it prints as the one result of the job:
#
#     publish.sh COMMAND [ARGUMENT...]
#
# Each attempt uploads an object of its own. The pointer is a small object that names the published one. It changes by
# conditional writes alone, so an attempt that was replaced cannot publish any more, even if it is still alive.
# To read the result, read the pointer first: the attempt, a space, and the key of the object.
#
# It needs curl 7.76 or newer, and the environment of job.yaml. If the work succeeds and the publishing does not, the
# exit code is 1, and the next attempt does both again.
set -eu

attempt=$HOLDFAST_ATTEMPT
object=results/$HOLDFAST_JOB_UID/$attempt
pointer=published/$HOLDFAST_JOB_UID
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# s3 KEY [CURL OPTION...]: one request. Prints its HTTP status; the answer is in $folder/headers and $folder/body.
s3() {
  key=$1
  shift
  curl --silent --show-error --retry 5 --max-time 300 --aws-sigv4 "aws:amz:${AWS_REGION:-us-east-1}:s3" \
    --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" --dump-header "$folder/headers" --output "$folder/body" \
    --write-out '%{http_code}' "$@" "$S3_BUCKET_URL/$key"
}

fail() {
  echo "publish.sh: $*" >&2
  exit 1
}

etag() {
  sed -n 's/^[Ee][Tt][Aa][Gg]: *//p' "$folder/headers" | tr -d '\r'
}

"$@" >"$folder/result" || exit

status=$(s3 "$object" --upload-file "$folder/result")
[ "$status" = 200 ] || fail "the upload of $object failed: HTTP $status"

echo "$attempt $object" >"$folder/pointer"
while :; do
  status=$(s3 "$pointer")
  case $status in
    200)
      read -r published _ <"$folder/body"
      [ "$published" -le "$attempt" ] || fail "fenced: attempt $published has published, so attempt $attempt is over"
      [ "$published" -ne "$attempt" ] || break # the answer to our own write was lost
      condition="If-Match: $(etag)"
      ;;
    404) condition="If-None-Match: *" ;;
    *) fail "cannot read $pointer: HTTP $status" ;;
  esac
  status=$(s3 "$pointer" --upload-file "$folder/pointer" --header "$condition")
  case $status in
    200) break ;;
    404 | 409 | 412) ;; # another attempt was quicker: look again
    *) fail "cannot write $pointer: HTTP $status" ;;
  esac
done
echo "published $object"
