#!/usr/bin/env python3
"""Prints the matches of a query as PATH:LINE:TEXT: search.py http://127.0.0.1:7431 QUERY"""
import base64, json, os, sys, urllib.error, urllib.request

if len(sys.argv) != 3:
    sys.exit(__doc__)
address, query = sys.argv[1:]
headers = {"Content-Type": "application/json"}
if "TRAWL_TOKEN" in os.environ:
    headers["Authorization"] = "Bearer " + os.environ["TRAWL_TOKEN"]
ask, page = {"query": query}, {"nextPageToken": ""}
while page:
    request = urllib.request.Request(address + "/api/v1/search", json.dumps(ask).encode(), headers)
    try:
        page = json.load(urllib.request.urlopen(request))
    except urllib.error.HTTPError as error:
        sys.exit(json.load(error)["message"])
    for file in page["files"]:
        path = base64.b64decode(file["path"]).decode(errors="replace")
        for chunk in file["chunks"]:
            lines = base64.b64decode(chunk["content"]).decode(errors="replace").splitlines()
            for number in sorted({r["start"]["lineNumber"] for r in chunk["ranges"]}):
                print(f'{file["repo"]}/{path}:{number}:{lines[number - chunk["contentStart"]["lineNumber"]]}')
    if not page["coverage"]["complete"]:
        print("the answer is incomplete", file=sys.stderr)
    ask["pageToken"] = page["nextPageToken"]
    page = page if ask["pageToken"] else None
