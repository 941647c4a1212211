#!/usr/bin/env python3
"""Prints the best files for a query, and how much was searched: search_grpc.py 127.0.0.1:7430 QUERY

The modules are generated from the protos: see docs/api.md.
"""
import os, sys

import grpc
from trawl.search.v1 import search_pb2, search_pb2_grpc

address, query = sys.argv[1:]
metadata = []
if "TRAWL_TOKEN" in os.environ:
    metadata.append(("authorization", "Bearer " + os.environ["TRAWL_TOKEN"]))
options = search_pb2.SearchOptions(mode=search_pb2.MODE_TOP_K, max_files=10)
search = search_pb2.SearchRequest(query=query, options=options)
with grpc.insecure_channel(address) as channel:
    service = search_pb2_grpc.SearchServiceStub(channel)
    try:
        for piece in service.StreamSearch(search_pb2.StreamSearchRequest(search=search), timeout=10, metadata=metadata):
            for file in piece.files:
                print(f"{file.repo}/{file.path.decode(errors='replace')}: {file.match_count} matches")
            if piece.HasField("coverage"):
                print(f"{piece.coverage.searched} of {piece.coverage.requested} shards searched")
    except grpc.RpcError as error:
        sys.exit(error.details())
